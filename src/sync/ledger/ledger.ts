import { closeSync, fstatSync, openSync, statSync } from "node:fs";
import { join } from "node:path";
import { KbsyncError } from "../../lib/failure.ts";
import type { UpgradeListener } from "../../lib/upgrade.ts";
import { openActivity } from "./activity.ts";
import { groupCommits } from "./commit.ts";
import { openContacts } from "./contacts.ts";
import { openErasures } from "./erasures.ts";
import { openFiles } from "./files/files.ts";
import { openIntents } from "./intents/intents.ts";
import { openMark } from "./mark.ts";
import { openMeta } from "./database/meta.ts";
import { openSqlite, type Sqlite } from "./database/open.ts";
import { statementsOf } from "./database/statements.ts";
import { openOperator } from "./operator.ts";
import { openTrashRows } from "./trash.ts";
import { openSources } from "./sources/sources.ts";
import type { RelativePath, RootIdentity } from "../plan/model.ts";
import type { NotedMount } from "../scan/rules/sub-mounts.ts";
import type { SettledIgnore } from "../scan/rules/ignore-settling.ts";

/** The tables of a ledger. Reads see committed data: call `flush` first where a change may be pending. */
export type LedgerTables = ReturnType<typeof openTables>;

/** Opens the tables of a database. */
export function openTables(db: Sqlite) {
  return {
    sources: openSources(db),
    files: openFiles(db),
    intents: openIntents(db),
    activity: openActivity(db),
    trash: openTrashRows(db),
    erasures: openErasures(db),
    contacts: openContacts(db),
    operator: openOperator(db),
    tree: openSourceTree(db),
  };
}

/** Acknowledged resources, and requests without an answer. */
export type Ledger = ReturnType<typeof openLedger>;

export interface LedgerOptions {
  /** Called before and after each transaction. May throw to simulate a crash. */
  readonly step?: (name: string) => void;
  /** Called when a transaction fails. Nothing can be written any more. */
  readonly onFailure?: (error: Error) => void;
  /** Is notified when a ledger of an older version is upgraded. */
  readonly listener?: UpgradeListener;
}

/** Returns the ledger file of a state folder. */
export function ledgerFile(stateDir: string): string {
  return join(stateDir, "ledger.db");
}

/**
 * Opens the ledger of a state folder. `service` identifies the service it belongs to. A ledger of another service is
 * refused (`ledger_other_service`), because its document ids mean nothing there.
 */
export function openLedger(stateDir: string, service: string, options: LedgerOptions = {}) {
  const file = ledgerFile(stateDir);
  const db = openSqlite(file, options);
  try {
    refuseForeign(db, file, service);
  } catch (error) {
    db.close();
    throw error;
  }
  // Closing another handle of the log drops none of SQLite's locks: those are on the database and on its shared memory.
  const wal = openSync(`${file}-wal`, "r+");
  const refuseIfMoved = watchFile(file, wal);
  const commits = groupCommits(db, file, {
    wal,
    step: (name) => {
      options.step?.(name);
      if (name === "commit") refuseIfMoved();
      if (name === "committed") mark.written();
    },
    onFailure: options.onFailure ?? (() => undefined),
  });
  const mark = openMark(db, { stateDir, ledger: file }, (change) => commits.write(change));
  const tables = openTables(db);
  const end = (): void => {
    commits.abandon();
    db.close();
    closeSync(wal);
  };
  return {
    ...commits,
    ...tables,
    /**
     * Records that the ledger belongs to the service it was opened for, before anything is written. Returns true if the
     * ledger is older than what was last written here: its sources must be compared with the service's list before anything
     * is created.
     */
    claim: (): boolean => {
      const isOld = mark.begin();
      db.transaction(() => {
        if (isOld) tables.contacts.distrust(null);
        db.prepare("INSERT INTO meta (name, value) VALUES ('service', ?) ON CONFLICT DO NOTHING").run(
          service,
        );
      })();
      return isOld;
    },
    /** Checkpoints the log into the file and closes it. */
    close: (): void => {
      try {
        commits.flush();
        const advanceMark = mark.end();
        copyBack(db);
        advanceMark();
      } finally {
        end();
      }
    },
    abandon: end,
  };
}

/**
 * Ensures that what is written can be found again. SQLite keeps writing to files that somebody has removed, and all of
 * it would be gone with the process. Checking two inodes costs a thousandth of the flush that follows.
 */
function watchFile(file: string, wal: number): () => void {
  const { dev, ino } = statSync(file);
  return () => {
    const now = statSync(file, { throwIfNoEntry: false });
    if (now?.dev === dev && now.ino === ino && fstatSync(wal).nlink > 0) return;
    throw new KbsyncError(`the ledger ${file} was removed or replaced while kbsync was running`, {
      code: "ledger_unusable",
      subject: file,
      hint: "Put it back if it was moved, and start again. `kbsync sync --recover` builds a new one from what the service holds.",
    });
  };
}

/** Checkpoints the log. What a full disk prevents from being copied stays in the log and is copied next time. */
function copyBack(db: Sqlite): void {
  try {
    db.pragma("wal_checkpoint(TRUNCATE)");
  } catch {
    // Nothing is lost: opening the ledger reads the log.
  }
}

function refuseForeign(db: Sqlite, file: string, service: string): void {
  const owner = openMeta(db).get("service");
  if (owner === undefined || owner === service) return;
  throw new KbsyncError(`the ledger ${file} belongs to the service ${owner}, not to ${service}`, {
    code: "ledger_other_service",
    subject: file,
    hint: "Give each service a state folder of its own: `--state-dir`, or `stateDir` in the configuration. The daemon fills a new knowledge base from its folders.",
  });
}

/** Prepares the statements over ignore files and mounts of sources. */
function openSourceTree(db: Sqlite) {
  const { run, all, value } = statementsOf(db);
  const ignoreFiles = all<[source: number], { folder: string; hash: string }>(
    "SELECT folder, hash FROM ignore_files WHERE source = ?",
  );
  const setIgnoreFile = run(
    `INSERT INTO ignore_files (source, folder, hash) VALUES (?, ?, ?)
     ON CONFLICT (source, folder) DO UPDATE SET hash = excluded.hash`,
  );
  const removeIgnoreFile = run("DELETE FROM ignore_files WHERE source = ? AND folder = ?");
  const mounts = all<[source: number], { path: string; dev: string; ino: string }>(
    "SELECT path, dev, ino FROM mounts WHERE source = ?",
  );
  const setMount = run(
    `INSERT INTO mounts (source, path, dev, ino) VALUES (?, ?, ?, ?)
     ON CONFLICT (source, path) DO UPDATE SET dev = excluded.dev, ino = excluded.ino`,
  );
  const removeMount = run("DELETE FROM mounts WHERE source = ? AND path = ?");
  // "0" follows "/" in byte order. Two look-ups, one index each.
  const hasFiles = value<[{ source: number; path: string }], number>(
    `SELECT EXISTS (SELECT 1 FROM files WHERE source = @source AND path = @path)
       OR EXISTS (SELECT 1 FROM files WHERE source = @source AND path >= @path || '/' AND path < @path || '0')
       OR (@path = '' AND EXISTS (SELECT 1 FROM files WHERE source = @source))`,
  );
  return {
    /** Hashes of the ignore files in force, by their paths as seen from the source. */
    ignoreFiles: (source: number): ReadonlyMap<string, string> =>
      new Map(ignoreFiles(source).map(({ folder, hash }) => [folder, hash])),
    setIgnoreFile: (source: number, { file, hash }: SettledIgnore): void => {
      if (hash === undefined) removeIgnoreFile(source, file);
      else setIgnoreFile(source, file, hash);
    },
    /** File systems mounted below a source's folder, by path. */
    mounts: (source: number): ReadonlyMap<string, RootIdentity> =>
      new Map(mounts(source).map(({ path, dev, ino }) => [path, { dev: Number(dev), ino: Number(ino) }])),
    setMount: (source: number, { path, root }: NotedMount): void => {
      if (root === undefined) removeMount(source, path);
      else setMount(source, path, String(root.dev), String(root.ino));
    },
    /** Reports whether there are files at or below a path; "" is the source's folder. */
    hasFiles: (source: number, path: RelativePath): boolean => hasFiles({ source, path }) === 1,
  };
}

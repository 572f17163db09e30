import { randomUUID } from "node:crypto";
import { closeSync, openSync } from "node:fs";
import { join } from "node:path";
import { KbsyncError } from "../../lib/failure.ts";
import { openActivity, type ActivityLog } from "./activity.ts";
import { groupCommits, type GroupCommit } from "./commit.ts";
import { openFiles, type Files } from "./files.ts";
import { openIntents, type Intents } from "./intents.ts";
import { openSqlite, type Sqlite } from "./open.ts";
import { openSources, type Sources } from "./sources.ts";

/**
 * What the service has acknowledged, and what left without an answer. Reads see what was committed: `flush` first
 * where a change may be waiting.
 */
export interface Ledger extends GroupCommit {
  readonly sources: Sources;
  readonly files: Files;
  readonly intents: Intents;
  readonly activity: ActivityLog;
  /** Copies the log back into the file and closes it. */
  close(): void;
}

export interface LedgerOptions {
  /** Told before and after each transaction; may throw to simulate a crash. */
  readonly step?: (name: string) => void;
  /** A transaction failed; nothing can be written any more. */
  readonly onFailure?: (error: Error) => void;
}

/** File of the ledger in a state folder. */
export function ledgerFile(stateDir: string): string {
  return join(stateDir, "ledger.db");
}

/**
 * Opens the ledger of a state folder. `service` names the service it belongs to; a ledger of another one is refused
 * (`ledger_other_service`), for its document ids mean nothing there.
 */
export function openLedger(stateDir: string, service: string, options: LedgerOptions = {}): Ledger {
  const file = ledgerFile(stateDir);
  const db = openSqlite(file);
  try {
    claim(db, file, service);
  } catch (error) {
    db.close();
    throw error;
  }
  // Closing another handle of the log drops no lock of SQLite's: those lie on the database and on its shared memory.
  const wal = openSync(`${file}-wal`, "r+");
  const commits = groupCommits(db, file, {
    wal,
    step: options.step ?? (() => undefined),
    onFailure: options.onFailure ?? (() => undefined),
  });
  const end = (): void => {
    commits.abandon();
    db.close();
    closeSync(wal);
  };
  return {
    ...commits,
    sources: openSources(db),
    files: openFiles(db),
    intents: openIntents(db),
    activity: openActivity(db),
    close: () => {
      try {
        commits.flush();
        copyBack(db);
      } finally {
        end();
      }
    },
    abandon: end,
  };
}

/** What a full disk keeps from being copied is in the log, and is copied next time. */
function copyBack(db: Sqlite): void {
  try {
    db.pragma("wal_checkpoint(TRUNCATE)");
  } catch {
    // Nothing is lost: the log is read whenever the ledger is opened.
  }
}

function claim(db: Sqlite, file: string, service: string): void {
  const read = db.prepare<[string], string>("SELECT value FROM meta WHERE name = ?").pluck();
  const write = db.prepare("INSERT INTO meta (name, value) VALUES (?, ?)");
  const before = read.get("service");
  if (before === undefined) {
    write.run("service", service);
    write.run("ledger_id", randomUUID());
  } else if (before !== service) {
    throw new KbsyncError(`the ledger ${file} belongs to the service ${before}, not to ${service}`, {
      code: "ledger_other_service",
      subject: file,
      hint: "use another stateDir for another service",
    });
  }
}

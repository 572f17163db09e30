import { chmodSync, readdirSync, renameSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import Database from "better-sqlite3";
import { flush } from "./durable-file.ts";
import { codeOf, KbsyncError } from "./failure.ts";
import { shortageAt, shortageWords } from "./full-disk.ts";

/** The schema of a database file, version by version. `user_version` in the file holds its version. */
export interface Schema {
  /** Version that the first script creates. Earlier versions were never released and are refused. */
  readonly baseline: number;
  /** The first creates the tables of a new file; each later one upgrades by one version. A released script never changes. */
  readonly scripts: readonly string[];
}

/** The file that `upgrade` works on, and its schema. */
export interface Upgrade {
  readonly file: string;
  readonly kind: "ledger" | "store";
  readonly schema: Schema;
  /** Marks the file as a kbsync database. */
  readonly applicationId?: number;
  readonly listener?: UpgradeListener;
}

/** Notified of upgrades of older files. A new or current file is no upgrade. */
export interface UpgradeListener {
  /** Called before an upgrade, which may take minutes and blocks the thread. */
  readonly begins?: () => void;
  /** Called after an upgrade, with a message for the log. */
  readonly done?: (message: string) => void;
}

/** Version that the scripts lead to. */
function currentVersion({ baseline, scripts }: Schema): number {
  return baseline + scripts.length - 1;
}

/** Version of a database's tables; 0: no tables yet. */
export function versionOf(db: Database.Database): number {
  return Number(db.pragma("user_version", { simple: true }));
}

const HINT_OLDER = {
  ledger:
    "It was left as it is. `kbsync sync --recover` keeps it under another name and makes a new one from what the service holds; nothing is sent twice.",
  store:
    "It was left as it is. Move the state folder away and start again: kbsync builds a new store from the watched folders. Documents, keys and threads that were made through the API are only in the old one.",
};

/** Throws `KIND_older` or `KIND_newer` for a file whose version the schema does not know. */
export function refuseUnknownVersion(db: Database.Database, { file, kind, schema }: Upgrade): void {
  const version = versionOf(db);
  if (version > currentVersion(schema)) {
    throw new KbsyncError(
      `the ${kind} ${file} was written by a newer kbsync: its tables have version ${version}, this program knows up to ${currentVersion(schema)}`,
      {
        code: `${kind}_newer`,
        subject: file,
        hint: "It was left as it is. Install the newer kbsync again, or use another state folder.",
      },
    );
  }
  if (version > 0 && version < schema.baseline) {
    throw new KbsyncError(
      `the ${kind} ${file} was written by a kbsync from before the first release: its tables have version ${version}, this program reads version ${schema.baseline} and later`,
      {
        code: `${kind}_older`,
        subject: file,
        hint: HINT_OLDER[kind],
      },
    );
  }
}

/**
 * Creates the tables of a new file or upgrades an older one, in one transaction: a crash leaves the old version. Copies an
 * older file first (`copyOf`) and removes copies of earlier versions. Nothing else may write meanwhile. Throws what
 * `refuseUnknownVersion` throws, `disk_full` if the copy does not fit, and SQLite's errors; each leaves the file unchanged.
 */
export function upgrade(db: Database.Database, of: Upgrade): void {
  const { file, kind, schema, applicationId, listener } = of;
  refuseUnknownVersion(db, of);
  const version = versionOf(db);
  const current = currentVersion(schema);
  if (version === current) return;
  const startMs = performance.now();
  if (version > 0) {
    listener?.begins?.();
    makeCopy(db, file, kind, version);
  }
  db.transaction(() => {
    runScripts(db, schema);
    if (applicationId !== undefined) db.pragma(`application_id = ${applicationId}`);
  }).immediate();
  if (version === 0) return;
  removeCopies(file, version);
  const seconds = ((performance.now() - startMs) / 1000).toFixed(1);
  const copy = copyOf(file, version);
  listener?.done?.(
    `upgraded the tables of the ${kind} from version ${version} to ${current} in ${seconds} s; a copy of the file before is at ${copy}`,
  );
}

/** Runs the scripts that lead from a database's version to the current one. */
function runScripts(db: Database.Database, schema: Schema): void {
  const done = versionOf(db);
  for (const script of schema.scripts.slice(done === 0 ? 0 : done - schema.baseline + 1)) db.exec(script);
  db.pragma(`user_version = ${currentVersion(schema)}`);
}

/** Positions of the two bytes in a database's header that say whether it has a log (https://sqlite.org/fileformat.html). */
const LOG_BYTES = [18, 19];

/**
 * Returns the database itself if it is current, otherwise a copy of it in memory with the current tables: a program that only
 * reads must not upgrade a file that another one may be writing. Closes the database in that case.
 */
export function asCurrent(db: Database.Database, schema: Schema): Database.Database {
  if (versionOf(db) === currentVersion(schema)) return db;
  const bytes = db.serialize();
  db.close();
  for (const at of LOG_BYTES) bytes[at] = 1;
  const copy = new Database(bytes);
  copy.transaction(() => runScripts(copy, schema))();
  return copy;
}

/** Path of the copy that an upgrade from `version` makes of a file. */
export function copyOf(file: string, version: number): string {
  return `${file}.version-${version}`;
}

/**
 * Writes a self-contained copy that includes the log (https://sqlite.org/lang_vacuum.html#vacuuminto). Under its final
 * name it is complete and flushed.
 */
function makeCopy(db: Database.Database, file: string, kind: string, version: number): void {
  const copy = copyOf(file, version);
  const partial = `${copy}.partial`;
  rmSync(partial, { force: true });
  try {
    db.prepare("VACUUM INTO ?").run(partial);
    chmodSync(partial, 0o600);
    flush(partial);
    renameSync(partial, copy);
    flush(dirname(copy));
  } catch (error) {
    rmSync(partial, { force: true });
    rmSync(`${partial}-journal`, { force: true });
    throw copyFailure(error, copy, kind);
  }
}

function removeCopies(file: string, except: number): void {
  const own = basename(file);
  for (const name of readdirSync(dirname(file))) {
    const version = name.startsWith(`${own}.version-`) ? name.slice(`${own}.version-`.length) : "";
    if (/^\d+$/.test(version) && Number(version) !== except) rmSync(join(dirname(file), name));
  }
}

function copyFailure(error: unknown, copy: string, kind: string): unknown {
  // SQLite reports a full disk under the copy as a full database.
  const shortage = shortageAt(copy, error) ?? (codeOf(error) === "SQLITE_FULL" ? "space" : undefined);
  if (shortage === undefined) return error;
  return new KbsyncError(
    `the ${kind} is of an older version, and cannot be copied to ${copy} before it is brought up to date: ${shortageWords(shortage).what}`,
    {
      code: "disk_full",
      subject: copy,
      retryable: true,
      hint: "It was left as it is. Free as much space as it takes, and start again.",
      cause: error,
    },
  );
}

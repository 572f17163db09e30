import { chmodSync, readdirSync, renameSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type Database from "better-sqlite3";
import { flush } from "./durable-file.ts";
import { codeOf, KbsyncError } from "./failure.ts";
import { shortageAt, shortageWords } from "./full-disk.ts";

/** The tables of a database file, version by version. `user_version` of the file says which it has. */
export interface Schema {
  /** Version that the first script makes. Versions below it were never released, and files of theirs are refused. */
  readonly baseline: number;
  /** The first makes the tables of a new file, each later one those of the next version. A released one never changes. */
  readonly scripts: readonly string[];
}

/** Which file `upgrade` works on, and how. */
export interface Upgrade {
  readonly file: string;
  readonly kind: "ledger" | "store";
  readonly schema: Schema;
  /** Marks the file as a database of ours. */
  readonly applicationId?: number;
  readonly listener?: UpgradeListener;
}

/** Is notified of upgrades of older files; a new file or a current one is no upgrade. */
export interface UpgradeListener {
  /** Called before an upgrade, which may take minutes and blocks the thread. */
  readonly begins?: () => void;
  /** Called after it, with words for a log. */
  readonly done?: (words: string) => void;
}

/** Version of the tables that the scripts make. */
export function currentVersion({ baseline, scripts }: Schema): number {
  return baseline + scripts.length - 1;
}

/** Version of a database's tables; 0: it has none. */
export function versionOf(db: Database.Database): number {
  return Number(db.pragma("user_version", { simple: true }));
}

const HINT_OLDER = {
  ledger:
    "It was left as it is. `kbsync recover` keeps it under another name and makes a new one from what the service holds; nothing is sent twice.",
  store:
    "It was left as it is. Move the state folder away and start again: files that the service does not have are sent once more.",
};

/** Throws `KIND_older` or `KIND_newer` for a file with tables of a version that the schema does not know. */
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
 * Makes the tables of a new file, or brings those of an older version up to date: all scripts or none, in one transaction.
 * A crash leaves the old version. An older file is copied first (`copyOf`); copies of versions before that one are
 * removed. Nothing else may be writing. Throws what `refuseUnknownVersion` throws, `disk_full` where there is no room
 * for the copy, and what SQLite throws: in each case the file is as it was.
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
    keepCopy(db, file, kind, version);
  }
  db.transaction(() => {
    const done = versionOf(db);
    for (const script of schema.scripts.slice(done === 0 ? 0 : done - schema.baseline + 1)) db.exec(script);
    if (applicationId !== undefined) db.pragma(`application_id = ${applicationId}`);
    db.pragma(`user_version = ${current}`);
  }).immediate();
  if (version === 0) return;
  removeCopies(file, version);
  const seconds = ((performance.now() - startMs) / 1000).toFixed(1);
  const copy = copyOf(file, version);
  listener?.done?.(
    `upgraded the tables of the ${kind} from version ${version} to ${current} in ${seconds} s; a copy of the file before is at ${copy}`,
  );
}

/** Where the copy of a file lies that was made before it was brought up from `version`. */
export function copyOf(file: string, version: number): string {
  return `${file}.version-${version}`;
}

/**
 * Writes a copy that stands by itself, with what the log holds (https://sqlite.org/lang_vacuum.html#vacuuminto). Under
 * its name it is whole and flushed.
 */
function keepCopy(db: Database.Database, file: string, kind: string, version: number): void {
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
  // SQLite reports a disk without room for the copy as a full database.
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

import { chmodSync, closeSync, fsyncSync, openSync, readdirSync, renameSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type Database from "better-sqlite3";
import { codeOf, KbsyncError } from "./failure.ts";
import { shortageAt, shortageWords } from "./full-disk.ts";

/** How a database file gets from each version of its tables to the next. */
export interface Upgrade {
  readonly file: string;
  /** What the file is, for people: `the ledger`. */
  readonly what: string;
  /** Scripts, one a version; `user_version` counts those done. A script that was released is never changed. */
  readonly steps: readonly string[];
  /** Marks the file as a database of ours. */
  readonly applicationId?: number;
  readonly ear?: UpgradeEar;
}

/** Hears of files of older versions; new and current ones are none. */
export interface UpgradeEar {
  /** Called before anything is done: what comes may take minutes, in which the thread answers nobody. */
  readonly begins?: () => void;
  /** Called when all is done, with words for a log. */
  readonly done?: (words: string) => void;
}

/**
 * Brings an open database up to date: all steps or none, in one transaction, so that a crash leaves the old version. What
 * an older version wrote is copied first (`copyOf`); the copies of versions before that one go, so that there is one at
 * most. Nothing else may be writing. Throws `disk_full` where the copy finds no room, and what SQLite throws: in either
 * case the file is as it was.
 */
export function upgrade(db: Database.Database, { file, what, steps, applicationId, ear }: Upgrade): void {
  const version = versionOf(db);
  if (version >= steps.length) return;
  const startMs = performance.now();
  if (version > 0) {
    ear?.begins?.();
    keepCopy(db, file, what, version);
  }
  db.transaction(() => {
    for (const step of steps.slice(versionOf(db))) db.exec(step);
    if (applicationId !== undefined) db.pragma(`application_id = ${applicationId}`);
    db.pragma(`user_version = ${steps.length}`);
  }).immediate();
  if (version === 0) return;
  removeCopies(file, version);
  const seconds = ((performance.now() - startMs) / 1000).toFixed(1);
  const copy = copyOf(file, version);
  ear?.done?.(
    `brought ${what} up from version ${version} of its tables to ${steps.length} in ${seconds} s; how it was is kept at ${copy}`,
  );
}

/** Version of a database's tables: how many steps made them. */
export function versionOf(db: Database.Database): number {
  return Number(db.pragma("user_version", { simple: true }));
}

/** Where the copy of a file lies that was made before it was brought up from `version`. */
export function copyOf(file: string, version: number): string {
  return `${file}.version-${version}`;
}

/**
 * Writes a copy that stands by itself, with what the log holds (https://sqlite.org/lang_vacuum.html#vacuuminto). Under
 * its name it is whole and flushed.
 */
function keepCopy(db: Database.Database, file: string, what: string, version: number): void {
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
    throw copyFailure(error, copy, what);
  }
}

function removeCopies(file: string, except: number): void {
  const own = basename(file);
  for (const name of readdirSync(dirname(file))) {
    const version = name.startsWith(`${own}.version-`) ? name.slice(`${own}.version-`.length) : "";
    if (/^\d+$/.test(version) && Number(version) !== except) rmSync(join(dirname(file), name));
  }
}

function flush(path: string): void {
  const handle = openSync(path, "r");
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

function copyFailure(error: unknown, copy: string, what: string): unknown {
  // SQLite tells a disk without room for the copy as a full database.
  const shortage = shortageAt(copy, error) ?? (codeOf(error) === "SQLITE_FULL" ? "space" : undefined);
  if (shortage === undefined) return error;
  return new KbsyncError(
    `${what} is of an older version, and cannot be copied to ${copy} before it is brought up to date: ${shortageWords(shortage).what}`,
    {
      code: "disk_full",
      subject: copy,
      retryable: true,
      hint: "It was left as it is. Free as much space as it takes, and start again.",
      cause: error,
    },
  );
}

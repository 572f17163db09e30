import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdtempSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import Database from "better-sqlite3";
import { codeOf, KbsyncError, messageOf } from "../../lib/failure.ts";
import { shortageAt, shortageWords } from "../../lib/full-disk.ts";
import { makePrivate } from "../../lib/private-path.ts";
import { upgrade, type UpgradeListener, versionOf } from "../../lib/upgrade.ts";
import { MIGRATIONS } from "./schema.ts";

const SCHEMA = { baseline: 1, scripts: MIGRATIONS };

export type Sqlite = Database.Database;

/**
 * The write-ahead log is copied back at about this many pages of 4 KB, which bounds it to 16 MB: the same pages of an
 * index change again and again during a first sync, and each copy costs a flush.
 */
const CHECKPOINT_PAGES = 4000;
/** Page cache in KiB: the indexes of some 100,000 files, so that acknowledging one reads nothing from disk. */
const CACHE_KIB = 16_384;
/** Tables that every version of a ledger has. */
const OWN_TABLES = ["meta", "sources", "files", "intents"];

/** How a ledger file is opened. */
export interface OpenOptions {
  /** For reading beside a running daemon; the file must be there. Of an older version's an upgraded copy is read. */
  readonly readonly?: boolean;
  /** With `readonly`: an older version's is read as it is, by who looks for damage. */
  readonly asItIs?: boolean;
  /** Is notified of an upgrade. */
  readonly listener?: UpgradeListener;
  /** Time of day, which a new ledger notes as its beginning. Default: the system's. */
  readonly now?: () => number;
}

/**
 * Opens a ledger file, creating it or bringing it up to date, of which a copy is kept first (`upgrade`). Throws
 * `ledger_newer` for one that a later version wrote, `ledger_foreign` for another program's database, `ledger_damaged`
 * for a file that is no sound database, `disk_full`, `ledger_unreachable` and `ledger_unusable` for one that cannot be
 * opened or written: now, or until somebody does something about it.
 * Whatever it refuses it leaves as it was.
 */
export function openSqlite(
  file: string,
  { readonly = false, asItIs = false, listener = {}, now = Date.now }: OpenOptions = {},
): Sqlite {
  let db: Sqlite | undefined;
  try {
    if (!readonly && !existsSync(file)) create(file, now());
    refuseEmpty(file);
    db = new Database(file, { readonly, fileMustExist: true });
    const version = recognise(db, file);
    if (!readonly) makePrivate(file);
    if (readonly && !asItIs && version < MIGRATIONS.length) {
      // An older version wrote it, and no daemon of this one has been on it yet; one of that version may be.
      const copy = upgradedCopy(db);
      db.close();
      db = copy;
    }
    db.pragma("busy_timeout = 5000");
    if (!readonly) db.pragma("journal_mode = WAL");
    // What must be on disk before a request leaves is flushed by the group commit, off the main thread.
    db.pragma("synchronous = NORMAL");
    db.pragma("foreign_keys = ON");
    db.pragma(`wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
    db.pragma(`cache_size = -${CACHE_KIB}`);
    if (!readonly) upgrade(db, { file, kind: "ledger", schema: SCHEMA, listener });
    return db;
  } catch (error) {
    db?.close();
    throw ledgerFailure(error, file);
  }
}

/**
 * Makes a ledger beside its place and puts it there whole. So a ledger without a byte in it is never one whose making
 * was cut off: it has lost what it said, and must not be taken for a new one.
 */
function create(file: string, nowMs: number): void {
  const beside = `${file}.new`;
  for (const left of [beside, `${beside}-journal`]) rmSync(left, { force: true });
  makePrivate(beside);
  const db = new Database(beside);
  try {
    upgrade(db, { file: beside, kind: "ledger", schema: SCHEMA });
    db.prepare("UPDATE meta SET value = ? WHERE name = 'born_ms'").run(String(Math.floor(nowMs)));
  } finally {
    db.close();
  }
  // The log of a ledger that was deleted would be taken for this one's, and put the old pages into it.
  for (const part of ["-wal", "-shm"]) rmSync(`${file}${part}`, { force: true });
  renameSync(beside, file);
  // Only then is it sure to be there after the power failed, and the log of its transactions with it.
  const folder = openSync(dirname(file), "r");
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}

function refuseEmpty(file: string): void {
  if (statSync(file, { throwIfNoEntry: false })?.size === 0) throw damaged(file, "it is empty");
}

/** Version of a ledger. Throws for any other database, so that no table of ours is ever made in it. */
function recognise(db: Sqlite, file: string): number {
  const version = versionOf(db);
  const names = db.prepare<[], string>("SELECT name FROM sqlite_schema WHERE type = 'table'").pluck().all();
  if (OWN_TABLES.some((name) => !names.includes(name))) {
    throw new KbsyncError(`${file} is no ledger of kbsync's: it is another program's database`, {
      code: "ledger_foreign",
      subject: file,
      hint: "It was left as it is. Move it away, or use another stateDir.",
    });
  }
  if (version > MIGRATIONS.length) {
    throw new KbsyncError(
      `the ledger ${file} has version ${version}; this program knows versions up to ${MIGRATIONS.length}`,
      {
        code: "ledger_newer",
        subject: file,
        hint: "install the newer kbsync again, or use another stateDir",
      },
    );
  }
  return version;
}

/** A copy of an older version's ledger in this version's tables, for reading; gone when it is closed. */
function upgradedCopy(db: Sqlite): Sqlite {
  const folder = mkdtempSync(join(tmpdir(), "kbsync-ledger-"));
  try {
    const file = join(folder, "copy.db");
    db.prepare("VACUUM INTO ?").run(file);
    const writable = new Database(file);
    try {
      // No `upgrade`: of a copy none is kept.
      for (const step of MIGRATIONS.slice(versionOf(writable))) writable.exec(step);
      writable.pragma(`user_version = ${MIGRATIONS.length}`);
    } finally {
      writable.close();
    }
    return new Database(file, { readonly: true, fileMustExist: true });
  } finally {
    // What is open stays readable without its name.
    rmSync(folder, { recursive: true });
  }
}

/** What a disk, a network or another process may do for a moment. Another start finds whether it has gone by. */
const PASSING = ["SQLITE_IOERR", "SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_PROTOCOL", "SQLITE_NOMEM"];

/** Puts a failure of SQLite into words for a person. */
export function ledgerFailure(error: unknown, file: string): KbsyncError {
  if (error instanceof KbsyncError) return error;
  const code = codeOf(error) ?? "";
  if (code === "SQLITE_NOTADB" || code.startsWith("SQLITE_CORRUPT")) {
    return damaged(file, messageOf(error), error);
  }
  const shortage = shortageAt(file, error);
  if (shortage !== undefined) {
    const { what, hint } = shortageWords(shortage);
    return new KbsyncError(`the ledger ${file} cannot be written: ${what}`, {
      code: "disk_full",
      subject: file,
      retryable: true,
      hint,
      cause: error,
    });
  }
  const isPassing = PASSING.some((prefix) => code.startsWith(prefix));
  return new KbsyncError(`the ledger ${file} cannot be used: ${messageOf(error)}`, {
    code: isPassing ? "ledger_unreachable" : "ledger_unusable",
    subject: file,
    retryable: isPassing,
    hint: "Check that the state folder is writable and its disk sound, or name another with --state-dir or stateDir.",
    cause: error,
  });
}

/** Whether an error is SQLite's own, as any look into a ledger may bring it up. */
export function isLedgerFailure(error: unknown): boolean {
  return codeOf(error)?.startsWith("SQLITE_") === true;
}

function damaged(file: string, words: string, cause?: unknown): KbsyncError {
  return new KbsyncError(`the ledger ${file} is damaged: ${words}`, {
    code: "ledger_damaged",
    subject: file,
    hint: "It was left as it is. `kbsync recover` keeps it and makes a new one from what the service holds.",
    cause,
  });
}

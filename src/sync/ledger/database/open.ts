import { existsSync, renameSync, rmSync, statSync } from "node:fs";
import { dirname } from "node:path";
import Database from "better-sqlite3";
import { flush } from "../../../lib/durable-file.ts";
import { codeOf, KbsyncError, messageOf } from "../../../lib/failure.ts";
import { shortageAt, shortageWords } from "../../../lib/full-disk.ts";
import { makePrivate } from "../../../lib/private-path.ts";
import { asCurrent, refuseUnknownVersion, upgrade, type UpgradeListener } from "../../../lib/upgrade.ts";
import { SCHEMA } from "./schema.ts";

export type Sqlite = Database.Database;

/**
 * The write-ahead log is checkpointed at about this many pages of 4 KB, which bounds it to 16 MB. During a first sync
 * the same index pages change again and again, and each checkpoint costs a flush.
 */
const CHECKPOINT_PAGES = 4000;
/**
 * Page cache in KiB: enough for the indexes of some 100,000 files, so that acknowledging a file reads nothing from
 * disk.
 */
const CACHE_KIB = 16_384;
/** Tables that every version of a ledger has. */
const OWN_TABLES = ["meta", "sources", "files", "intents"];

/** How to open a ledger file. */
export interface OpenOptions {
  /** For reading while a daemon is running. The file must exist. One of an older version is read as it would be upgraded. */
  readonly readonly?: boolean;
  /** Is notified of an upgrade. */
  readonly listener?: UpgradeListener;
}

/**
 * Opens a ledger file, creates it, or upgrades it after making a copy (`upgrade`). Throws `ledger_newer` for a file
 * that a later version wrote, `ledger_older` for one from before the first release, `ledger_foreign` for another
 * program's database, `ledger_damaged` for a file that is not a sound database, and `disk_full`, `ledger_unreachable`
 * and `ledger_unusable` for one that cannot be opened or written, now or until somebody acts. Leaves whatever it
 * refuses unchanged.
 */
export function openSqlite(file: string, { readonly = false, listener = {} }: OpenOptions = {}): Sqlite {
  let db: Sqlite | undefined;
  try {
    if (!readonly && !existsSync(file)) create(file);
    refuseEmpty(file);
    db = new Database(file, { readonly, fileMustExist: true });
    refuseForeign(db, file);
    refuseUnknownVersion(db, { file, kind: "ledger", schema: SCHEMA });
    if (!readonly) makePrivate(file);
    db.pragma("busy_timeout = 5000");
    if (readonly) return asCurrent(db, SCHEMA);
    db.pragma("journal_mode = WAL");
    // The group commit flushes what must be on disk before a request leaves, off the main thread.
    db.pragma("synchronous = NORMAL");
    db.pragma("foreign_keys = ON");
    db.pragma(`wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
    db.pragma(`cache_size = -${CACHE_KIB}`);
    upgrade(db, { file, kind: "ledger", schema: SCHEMA, listener });
    return db;
  } catch (error) {
    db?.close();
    throw ledgerFailure(error, file);
  }
}

/**
 * Makes a ledger under a temporary name and renames it into place. A ledger of zero bytes is therefore never one whose
 * creation was interrupted: it has lost its contents and must not be mistaken for a new one.
 */
function create(file: string): void {
  const beside = `${file}.new`;
  for (const left of [beside, `${beside}-journal`]) rmSync(left, { force: true });
  makePrivate(beside);
  const db = new Database(beside);
  try {
    upgrade(db, { file: beside, kind: "ledger", schema: SCHEMA });
  } finally {
    db.close();
  }
  // The log of a deleted ledger would be mistaken for this one's, and its old pages applied.
  for (const part of ["-wal", "-shm"]) rmSync(`${file}${part}`, { force: true });
  renameSync(beside, file);
  // Only now is the file, and the log of its transactions, certain to survive a power failure.
  flush(dirname(file));
}

function refuseEmpty(file: string): void {
  if (statSync(file, { throwIfNoEntry: false })?.size === 0) throw damaged(file, "it is empty");
}

/** Throws for a database without a ledger's tables, so that kbsync never creates a table in it. */
function refuseForeign(db: Sqlite, file: string): void {
  const names = db.prepare<[], string>("SELECT name FROM sqlite_schema WHERE type = 'table'").pluck().all();
  if (OWN_TABLES.every((name) => names.includes(name))) return;
  throw new KbsyncError(`${file} is not a kbsync ledger: it is another program's database`, {
    code: "ledger_foreign",
    subject: file,
    hint: "It was left unchanged. Move it away, or name another state folder with `--state-dir`.",
  });
}

/**
 * Failures that a disk, a network or another process may cause for a moment. The next start finds out whether they have
 * passed.
 */
const PASSING = ["SQLITE_IOERR", "SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_PROTOCOL", "SQLITE_NOMEM"];

/** Explains a failure of SQLite to a person. */
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
    hint: "Check that the state folder is writable and its disk healthy, or name another with --state-dir or stateDir.",
    cause: error,
  });
}

/** Reports whether an error is SQLite's own. Any access to a ledger may throw one. */
export function isLedgerFailure(error: unknown): boolean {
  return codeOf(error)?.startsWith("SQLITE_") === true;
}

function damaged(file: string, words: string, cause?: unknown): KbsyncError {
  return new KbsyncError(`the ledger ${file} is damaged: ${words}`, {
    code: "ledger_damaged",
    subject: file,
    hint: "It was left unchanged. `kbsync sync --recover` renames it and builds a new one from what the service holds.",
    cause,
  });
}

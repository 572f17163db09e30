import Database from "better-sqlite3";
import { codeOf, KbsyncError, messageOf } from "../../lib/failure.ts";
import { MIGRATIONS } from "./schema.ts";

export type Sqlite = Database.Database;

/**
 * The write-ahead log is copied back at about this many pages of 4 KB, which bounds it to 16 MB: the same pages of an
 * index change again and again during a first sync, and each copy costs a flush.
 */
const CHECKPOINT_PAGES = 4000;
/** Page cache in KiB: the indexes of some 100,000 files, so that acknowledging one reads nothing from disk. */
const CACHE_KIB = 16_384;

/**
 * Opens a ledger file, creating or bringing it up to date. Throws `ledger_newer` for one that a later version wrote,
 * `ledger_damaged` for a file that is no sound database, `ledger_unusable` for one that cannot be opened or written.
 * `readonly` opens an existing one for reading beside a running daemon.
 */
export function openSqlite(file: string, { readonly = false } = {}): Sqlite {
  let db: Sqlite | undefined;
  try {
    db = new Database(file, { readonly, fileMustExist: readonly });
    if (readonly && Number(db.pragma("user_version", { simple: true })) < MIGRATIONS.length) {
      // An older version wrote it, and no daemon of this one has been on it yet.
      openSqlite(file).close();
    }
    db.pragma("busy_timeout = 5000");
    if (!readonly) db.pragma("journal_mode = WAL");
    // What must be on disk before a request leaves is flushed by the group commit, off the main thread.
    db.pragma("synchronous = NORMAL");
    db.pragma("foreign_keys = ON");
    db.pragma(`wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
    db.pragma(`cache_size = -${CACHE_KIB}`);
    migrate(db, file, readonly);
    return db;
  } catch (error) {
    db?.close();
    throw ledgerFailure(error, file);
  }
}

function migrate(db: Sqlite, file: string, readonly: boolean): void {
  const version = Number(db.pragma("user_version", { simple: true }));
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
  if (readonly || version === MIGRATIONS.length) return;
  db.transaction(() => {
    for (const step of MIGRATIONS.slice(version)) db.exec(step);
    db.pragma(`user_version = ${MIGRATIONS.length}`);
  }).immediate();
}

/** Puts a failure of SQLite into words for a person. */
export function ledgerFailure(error: unknown, file: string): KbsyncError {
  if (error instanceof KbsyncError) return error;
  const code = codeOf(error) ?? "";
  if (code === "SQLITE_NOTADB" || code.startsWith("SQLITE_CORRUPT")) {
    return new KbsyncError(`the ledger ${file} is damaged: ${messageOf(error)}`, {
      code: "ledger_damaged",
      subject: file,
      hint: "keep the file, move it away and start again",
      cause: error,
    });
  }
  return new KbsyncError(`the ledger ${file} cannot be used: ${messageOf(error)}`, {
    code: "ledger_unusable",
    subject: file,
    hint: "check that the state folder is writable and its disk not full",
    cause: error,
  });
}

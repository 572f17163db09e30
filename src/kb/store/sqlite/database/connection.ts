import Database from "better-sqlite3";
import { KbsyncError } from "../../../../lib/failure.ts";
import { makePrivate } from "../../../../lib/private-path.ts";
import { refuseUnknownVersion, upgrade, type UpgradeListener } from "../../../../lib/upgrade.ts";
import { storeFailure } from "./failures.ts";
import { SCHEMA } from "./schema.ts";

/** Marks a file as a store of this program (the bytes "kbst"). */
const APPLICATION_ID = 0x6b627374;
/** Waiting for another process's lock; none is expected. */
const BUSY_TIMEOUT_MS = 5000;
/** Page cache of a connection, in KiB (the pragma's negative unit). */
const CACHE_KIB = 32 * 1024;
/**
 * How much of the file a reader maps into its memory, the most SQLite does. Each commit of the writer empties a reader's
 * page cache; with the file mapped, a page that is read again then costs no system call (half the time of a search of
 * words while documents come in). The pages are the system's file cache, which it takes back as it needs.
 */
const MAPPED_BYTES = 0x7fff0000;

export type Connection = Database.Database;

/**
 * Opens the store file for writing, makes it or brings its schema up to date, of which a copy is kept first. Every commit
 * is flushed to disk before it returns (WAL, synchronous FULL). Throws a KbsyncError, and leaves the file as it is, when
 * it is damaged, no store, of a version that this program does not know, or there is no room for the copy.
 */
export function openForWriting(path: string, listener: UpgradeListener = {}): Connection {
  return guarded(path, {}, (db) => {
    refuseForeign(db, path);
    makePrivate(path);
    db.pragma("journal_mode = WAL");
    db.pragma("synchronous = FULL");
    db.pragma("foreign_keys = ON");
    // What is deleted is overwritten, or it would stand in free pages, and in every later backup. FAST leaves those.
    db.pragma("secure_delete = ON");
    // Checkpoints are taken between transactions, see writer-worker.ts.
    db.pragma("wal_autocheckpoint = 0");
    upgrade(db, { file: path, kind: "store", schema: SCHEMA, applicationId: APPLICATION_ID, listener });
    // What a savepoint may have to take back would lie in a temporary file from 64 KB on. On a full disk that cannot be
    // made, and a delete, which has a reserve for its log, would fail. Not for an upgrade, which may sort a whole store.
    db.pragma("temp_store = MEMORY");
  });
}

/** Opens the store file for reading, after a writer has made it. Reads see every commit that returned before. */
export function openForReading(path: string): Connection {
  return guarded(path, { readonly: true, fileMustExist: true }, (db) => {
    refuseForeign(db, path);
    db.pragma(`mmap_size = ${MAPPED_BYTES}`);
  });
}

function guarded(path: string, options: Database.Options, prepare: (db: Connection) => void): Connection {
  let db: Connection | undefined;
  try {
    db = new Database(path, { timeout: BUSY_TIMEOUT_MS, ...options });
    db.pragma(`cache_size = -${CACHE_KIB}`);
    prepare(db);
    return db;
  } catch (error) {
    db?.close();
    throw storeFailure(error, path);
  }
}

function refuseForeign(db: Connection, path: string): void {
  const tables = db.prepare<[], number>("SELECT count(*) FROM sqlite_schema").pluck().get();
  if (tables === 0) return;
  if (db.pragma("application_id", { simple: true }) !== APPLICATION_ID) {
    throw new KbsyncError(`the store file is another program's database: ${path}`, {
      code: "store_foreign",
      subject: path,
      hint: "Choose another state folder.",
    });
  }
  refuseUnknownVersion(db, { file: path, kind: "store", schema: SCHEMA });
}

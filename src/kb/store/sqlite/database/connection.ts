import Database from "better-sqlite3";
import { KbsyncError } from "../../../../lib/failure.ts";
import { makePrivate } from "../../../../lib/private-path.ts";
import { refuseUnknownVersion, upgrade, type UpgradeListener } from "../../../../lib/upgrade.ts";
import { storeFailure } from "./failures.ts";
import { SCHEMA } from "./schema.ts";

/** Marks a file as a store of this program (the bytes "kbst"). */
const APPLICATION_ID = 0x6b627374;
/** Maximum wait for another process's lock; none is expected. */
const BUSY_TIMEOUT_MS = 5000;
/** Page cache of a connection, in KiB (the pragma's negative unit). */
const CACHE_KIB = 32 * 1024;
/**
 * Bytes of the file that a reader maps into memory, the maximum of SQLite. Each commit of the writer invalidates a reader's
 * page cache. With the file mapped, reading a page again costs no system call, which halves the time of a search by words
 * during ingest. The pages belong to the system's file cache, which reclaims them as needed.
 */
const MAPPED_BYTES = 0x7fff0000;

export type Connection = Database.Database;

/**
 * Opens the store file for writing. Creates it, or upgrades its schema after making a copy. Every commit is flushed to disk
 * before it returns (WAL, synchronous FULL). Throws a KbsyncError, and leaves the file as it is, if it is damaged, is no
 * store, has a version that this program does not know, or there is no space for the copy.
 */
export function openForWriting(path: string, listener: UpgradeListener = {}): Connection {
  return guarded(path, {}, (db) => {
    refuseForeign(db, path);
    makePrivate(path);
    db.pragma("journal_mode = WAL");
    db.pragma("synchronous = FULL");
    db.pragma("foreign_keys = ON");
    // Overwrites deleted content, which would otherwise remain in free pages and in every later backup. FAST leaves those.
    db.pragma("secure_delete = ON");
    // The writer checkpoints between transactions; see writer.ts.
    db.pragma("wal_autocheckpoint = 0");
    upgrade(db, { file: path, kind: "store", schema: SCHEMA, applicationId: APPLICATION_ID, listener });
    // SQLite writes the undo data of a savepoint to a temporary file above 64 KB. That fails on a full disk, and with it a
    // delete, which has a reserve only for its log. Set after the upgrade, which may sort a whole store.
    db.pragma("temp_store = MEMORY");
  });
}

/** Opens the store file for reading, after a writer has created it. Reads see every commit that returned before. */
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

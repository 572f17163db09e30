import type { KnownUpload, StoreMaintenance } from "../maintenance.ts";
import { accountKeys, restrictKeys } from "./accounts/restricted-keys.ts";
import { checkStore } from "./check/check.ts";
import { type Connection, openForReading, openForWriting } from "./database/connection.ts";
import { storeFailure } from "./database/failures.ts";

/** The maintenance of a store file, which may be a copy. */
export function sqliteMaintenance(path: string): StoreMaintenance {
  const read = <T>(work: (db: Connection) => T): T => {
    const db = openForReading(path);
    try {
      return work(db);
    } catch (error) {
      throw storeFailure(error, path);
    } finally {
      db.close();
    }
  };
  const files = "SELECT token, name, size_bytes AS sizeBytes, sha256 FROM stored_file ORDER BY token";
  return {
    check: (options) => checkStore(path, options),
    uploads: () => read((db) => db.prepare<[], KnownUpload>(files).all()),
    upgrade: () => {
      openForWriting(path).close();
    },
    keys: () => read(accountKeys),
    restrictKeys: (keys) => restrictKeys(keys, path),
  };
}

import type { KnownUpload, StoreMaintenance } from "../maintenance.ts";
import { accountKeys, restrictKeys } from "./accounts/restricted-keys.ts";
import { checkStore } from "./check/check.ts";
import { openForReading, openForWriting } from "./database/connection.ts";

/** The maintenance of a store file, which may be a copy. */
export function sqliteMaintenance(path: string): StoreMaintenance {
  return {
    check: (options) => checkStore(path, options),
    uploads: () => {
      const db = openForReading(path);
      try {
        const files = "SELECT token, name, size_bytes AS sizeBytes, sha256 FROM stored_file ORDER BY token";
        return db.prepare<[], KnownUpload>(files).all();
      } finally {
        db.close();
      }
    },
    upgrade: () => {
      openForWriting(path).close();
    },
    keys: () => accountKeys(path),
    restrictKeys: (keys) => restrictKeys(keys, path),
  };
}

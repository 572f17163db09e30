import type { UserMetadata } from "../../../../wire/metadata.ts";
import { metadataEntries } from "../../metadata.ts";
import { storedValue } from "../../rows/metadata-values.ts";
import type { Connection } from "../database/connection.ts";

/** Writes of the values that filters match. Each runs inside a transaction of the caller. */
export interface MetadataWrites {
  add(scope: number, resource: number, metadata: UserMetadata): void;
  /** Removes the values of a resource; `metadata` must equal what was added. */
  remove(scope: number, resource: number, metadata: UserMetadata): void;
  /** Notes that a filter may match other chunks than before. */
  noteChange(scope: number): void;
}

/** Prepares the statements on the writing connection. */
export function prepareMetadataWrites(db: Connection): MetadataWrites {
  const insert = db.prepare(
    "INSERT INTO metadata_value (scope, path, kind, value, resource) VALUES (?, ?, ?, ?, ?)",
  );
  const remove = db.prepare(
    "DELETE FROM metadata_value WHERE scope = ? AND path = ? AND kind = ? AND value = ? AND resource = ?",
  );
  const note = db.prepare("UPDATE scope SET refiltered = refiltered + 1 WHERE number = ?");
  return {
    add: (scope, resource, metadata) => {
      for (const { path, value } of metadataEntries(metadata)) {
        const stored = storedValue(value);
        insert.run(scope, path, stored.kind, stored.value, resource);
      }
    },
    remove: (scope, resource, metadata) => {
      for (const { path, value } of metadataEntries(metadata)) {
        const stored = storedValue(value);
        remove.run(scope, path, stored.kind, stored.value, resource);
      }
    },
    noteChange: (scope) => {
      note.run(scope);
    },
  };
}

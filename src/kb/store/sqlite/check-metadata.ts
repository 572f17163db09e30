import type { UserMetadata } from "../../../wire/metadata.ts";
import { metadataEntries } from "../metadata.ts";
import type { Connection } from "./connection.ts";
import { storedValue } from "./metadata-writes.ts";

/** Ids of live documents that filters find by other values than their metadata has. */
export function* wrongMetadata(db: Connection): Generator<string> {
  const values = db
    .prepare<[number, number], string>(
      "SELECT json_array(path, kind, value) FROM metadata_value WHERE scope = ? AND resource = ?",
    )
    .pluck();
  // By the scope's rows once, where few documents have metadata: those without must have no rows either.
  const documents = db.prepare<[], { number: number; scope: number; id: string; metadata: string }>(
    `SELECT number, scope, id, metadata FROM resource WHERE is_deleted = 0 AND (metadata <> '{}'
      OR number IN (SELECT resource FROM metadata_value))`,
  );
  for (const { number, scope, id, metadata } of documents.all()) {
    const expected = metadataEntries(JSON.parse(metadata) as UserMetadata) // written by this store from such an object
      .map(({ path, value }) => {
        const stored = storedValue(value);
        return JSON.stringify([path, stored.kind, stored.value]);
      });
    const found = values.all(scope, number).map((row) => JSON.stringify(JSON.parse(row)));
    if (expected.toSorted().join("\n") !== found.toSorted().join("\n")) yield id;
  }
}

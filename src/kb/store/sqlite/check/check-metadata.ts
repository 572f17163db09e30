import { metadataOf } from "../../rows/records.ts";
import { metadataEntries } from "../../metadata.ts";
import { sumWith } from "./check-sums.ts";
import type { Connection } from "../database/connection.ts";
import { storedValue } from "../../rows/metadata-values.ts";

/**
 * Yields the ids of live documents whose entries for filters differ from their metadata. Scans all values once, because no
 * index finds them by document, and holds a sum per document: about 50 bytes for each that has metadata.
 */
export function* wrongMetadata(db: Connection): Generator<string> {
  const sums = new Map<number, number>();
  const values = db
    .prepare<[], [resource: number, ...Value]>(
      "SELECT resource, scope, path, kind, value FROM metadata_value",
    )
    .raw();
  for (const [resource, ...value] of values.iterate())
    sums.set(resource, sumWith(sums.get(resource) ?? 0, JSON.stringify(value)));

  const documents = db
    .prepare<[], [number: number, scope: number, id: string, metadata: string, file_metadata: string]>(
      "SELECT number, scope, id, metadata, file_metadata FROM resource WHERE is_deleted = 0",
    )
    .raw();
  for (const [number, scope, id, metadata, file_metadata] of documents.iterate()) {
    let expected = 0;
    for (const { path, value } of metadataEntries(metadataOf({ metadata, file_metadata }))) {
      const stored = storedValue(value);
      expected = sumWith(expected, JSON.stringify([scope, path, stored.kind, stored.value] satisfies Value));
    }
    if (expected !== (sums.get(number) ?? 0)) yield id;
  }
}

/** A value with its scope and path, as columns of the table. */
type Value = [scope: number, path: string, kind: string, value: string | number];

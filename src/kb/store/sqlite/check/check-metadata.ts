import { metadataOf } from "../../rows/records.ts";
import { metadataEntries } from "../../metadata.ts";
import type { Connection } from "../database/connection.ts";
import { storedValue } from "../../rows/metadata-values.ts";

/** Sums below this are exact integers. */
const SUM_MAX = 2 ** 52;

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

/** Adds an item to a sum. Equal items give equal sums in any order; different items almost never do. */
export function sumWith(sum: number, item: string): number {
  return (sum + mixed(item)) % SUM_MAX;
}

/** Hashes an item to 52 bits: two 26-bit halves of independent FNV-1a hashes. */
function mixed(item: string): number {
  let one = 0x811c9dc5;
  let two = 0x050c5d1f;
  for (let at = 0; at < item.length; at++) {
    const unit = item.charCodeAt(at);
    one = Math.imul(one ^ unit, 0x01000193);
    two = Math.imul(two ^ unit, 0x01000197);
  }
  return ((one >>> 6) * 2 ** 26 + (two >>> 6)) % SUM_MAX;
}

import type { Pending } from "../../../wire/search.ts";
import { PENDING_CHUNKS_MAX } from "../search-index.ts";

/** Scopes whose progress is remembered. A forgotten one is checked from its first chunk. */
export const SCOPES_MAX = 1000;

/** A chunk without a vector, and the number of its document. */
export interface Lacking {
  readonly row: number;
  readonly resource: number;
}

/** The chunks of a scope that were checked for vectors of a model. */
export interface Checked {
  /** All chunks up to this row have a vector, except `lacking`. */
  readonly row: number;
  /** Ascending. */
  readonly lacking: readonly Lacking[];
}

/** Counts the documents of chunks without a vector, of which at most `PENDING_CHUNKS_MAX` were looked for. */
export function countDocuments(resources: readonly number[]): Omit<Pending, "read"> {
  const embed = new Set(resources).size;
  return resources.length < PENDING_CHUNKS_MAX ? { embed } : { embed, more: true };
}

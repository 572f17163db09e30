import type { CodeList } from "../../index/codes.ts";
import type { RowRange } from "../../index/rows.ts";

/** Memory for codes, in bytes: 4 million vectors of 384 dimensions. The least recently used scopes are evicted first. */
const CODE_BYTES_MAX = 256 * 1024 * 1024;
/**
 * Memory for the vectors of the codes, in bytes: 250,000 of 384 dimensions. Above it, the vectors of the least recently used
 * scopes are evicted, and read from the database as needed, about 400 per search.
 */
export const STORED_BYTES_MAX = 96 * 1024 * 1024;
/** Growth of a list since its mean was computed after which it is rebuilt. */
export const MEAN_GROWTH_MAX = 2;
/** Number of chunks whose cosine is computed exactly: the minimum, and the number per hit. See the test of recall. */
const RESCORED_MIN = 400;
const RESCORED_PER_HIT = 4;

/** Returns of how many chunks the cosine is computed exactly. */
export function rescoredCount(limit: number): number {
  return Math.max(RESCORED_MIN, limit * RESCORED_PER_HIT);
}

/**
 * Evicts vectors and codes of the least recently used scopes, which come first, above the bounds. The last scope keeps its codes,
 * which its search is about to read.
 */
export function evict(
  partitions: Map<string, { readonly codes: Pick<CodeList, "bytes" | "storedBytes" | "dropStored"> }>,
): void {
  let bytes = 0;
  let storedBytes = 0;
  for (const { codes } of partitions.values()) {
    bytes += codes.bytes;
    storedBytes += codes.storedBytes;
  }
  for (const [oldest, { codes }] of partitions) {
    if (storedBytes > STORED_BYTES_MAX) {
      storedBytes -= codes.storedBytes;
      codes.dropStored();
    }
    if (bytes <= CODE_BYTES_MAX || partitions.size === 1) continue;
    partitions.delete(oldest);
    bytes -= codes.bytes;
  }
}

/** Merges ascending ranges that touch or overlap, so that consecutive documents need one lookup. */
export function mergedRanges(ranges: readonly RowRange[]): RowRange[] {
  const result: { first: number; last: number }[] = [];
  for (const { first, last } of ranges) {
    const before = result.at(-1);
    if (before !== undefined && first <= before.last + 1) before.last = Math.max(before.last, last);
    else result.push({ first, last });
  }
  return result;
}

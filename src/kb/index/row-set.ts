import type { RowRange } from "./rows.ts";

/** Sequences (rows within a scope) that a filter lets through: a bit each, so that asking for one costs a look. */
export interface RowSet {
  has(sequence: number): boolean;
  /** Those within a range of sequences, ascending; at most `limit` and one more. */
  within(range: RowRange, limit: number): number[];
  readonly bytes: number;
}

/** Makes the set of some ranges of sequences, all below `size`. */
export function makeRowSet(size: number, ranges: Iterable<RowRange>): RowSet {
  const bits = new Uint32Array(Math.ceil(size / 32));
  for (const { first, last } of ranges) {
    for (let at = first; at <= last; at++) {
      const word = at >>> 5;
      bits[word] = (bits[word] ?? 0) | (1 << (at & 31));
    }
  }
  const has = (sequence: number): boolean => ((bits[sequence >>> 5] ?? 0) & (1 << (sequence & 31))) !== 0;
  return {
    has,
    bytes: bits.byteLength,
    within: ({ first, last }, limit) => {
      const found: number[] = [];
      const end = Math.min(last, size - 1);
      for (let at = first; at <= end && found.length <= limit; at++) {
        // Most sets are sparse: a word without bits is passed at once.
        if ((at & 31) === 0 && bits[at >>> 5] === 0) at += 31;
        else if (has(at)) found.push(at);
      }
      return found;
    },
  };
}

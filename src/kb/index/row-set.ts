import type { RowRange } from "./rows.ts";

/** The sequences (rows within a scope) that pass a filter, as a bitmap. */
export interface RowSet {
  has(sequence: number): boolean;
  /** Returns the members within a range, ascending, at most `limit` + 1: one more shows that the limit is exceeded. */
  within(range: RowRange, limit: number): number[];
  readonly bytes: number;
}

/** Makes the set of all sequences in the ranges, which lie below `size`. */
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
      const members: number[] = [];
      const end = Math.min(last, size - 1);
      for (let at = first; at <= end && members.length <= limit; at++) {
        // Most sets are sparse: skips empty words.
        if ((at & 31) === 0 && bits[at >>> 5] === 0) at += 31;
        else if (has(at)) members.push(at);
      }
      return members;
    },
  };
}

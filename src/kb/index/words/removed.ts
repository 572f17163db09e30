import type { Part } from "./part.ts";
import { eachPosting, type PostingList } from "./postings.ts";

/** The chunks of a part that were removed since it was written. */
export interface Removed {
  has(ordinal: number): boolean;
  /** Number of removed chunks. */
  count(): number;
  /** Marks the chunks of a range of sequences that the part holds. Repeating it changes nothing. */
  add(first: number, last: number): void;
  /** Returns the number of postings of removed chunks. */
  postings(list: PostingList): number;
}

export function makeRemoved(part: Part): Removed {
  const bits = new Uint8Array(Math.ceil(part.rows / 8));
  /** Counts by list, valid while no further chunk is removed. */
  let counted = new WeakMap<PostingList, number>();
  let removed = 0;
  const has = (ordinal: number): boolean => (((bits[ordinal >>> 3] ?? 0) >>> (ordinal & 7)) & 1) === 1;

  return {
    has,
    count: () => removed,
    add(first, last) {
      const before = removed;
      for (let at = part.ordinalFrom(first); at < part.rows && part.sequence(at) <= last; at++) {
        if (has(at)) continue;
        bits[at >>> 3] = (bits[at >>> 3] ?? 0) | (1 << (at & 7));
        removed++;
      }
      if (removed !== before) counted = new WeakMap();
    },
    postings(list) {
      if (removed === 0) return 0;
      const known = counted.get(list);
      if (known !== undefined) return known;
      let count = 0;
      eachPosting(list.bytes, (ordinal) => {
        if (has(ordinal)) count++;
      });
      counted.set(list, count);
      return count;
    },
  };
}

/** A part of a snapshot of a scope. */
export interface LivePart {
  readonly part: Part;
  readonly removed: Removed;
}

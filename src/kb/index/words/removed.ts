import type { Part } from "./part.ts";
import { eachPosting, lookUp, type PostingList } from "./postings.ts";

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

/** Postings that can be read in the time in which one chunk is looked up in a list. */
const LOOK_UP_COST = 12;

export function makeRemoved(part: Part): Removed {
  const bits = new Uint8Array(Math.ceil(part.rows / 8));
  /** Counts by list, valid while no further chunk is removed. */
  let counted = new WeakMap<PostingList, number>();
  let removed = 0;
  /** Ordinals of the removed chunks, ascending; undefined: not collected since the last removal. */
  let ordinals: Uint32Array | undefined;
  const has = (ordinal: number): boolean => (((bits[ordinal >>> 3] ?? 0) >>> (ordinal & 7)) & 1) === 1;
  const countRead = ({ bytes }: PostingList): number => {
    let count = 0;
    eachPosting(bytes, (ordinal) => {
      if (has(ordinal)) count++;
    });
    return count;
  };
  const countLookedUp = (list: PostingList): number => {
    ordinals ??= setBits(bits, removed);
    const times = new Uint32Array(removed);
    lookUp(list, ordinals, removed, times);
    return times.reduce((count, of) => count + (of > 0 ? 1 : 0), 0);
  };

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
      if (removed === before) return;
      counted = new WeakMap();
      ordinals = undefined;
    },
    postings(list) {
      if (removed === 0) return 0;
      const known = counted.get(list);
      if (known !== undefined) return known;
      const count = removed * LOOK_UP_COST < list.count ? countLookedUp(list) : countRead(list);
      counted.set(list, count);
      return count;
    },
  };
}

/** Returns the numbers of the bits that are set, ascending; there are `count`. */
function setBits(bits: Uint8Array, count: number): Uint32Array {
  const numbers = new Uint32Array(count);
  let found = 0;
  for (let at = 0; at < bits.length; at++) {
    const byte = bits[at] ?? 0;
    for (let bit = 0; byte >>> bit > 0; bit++)
      if (((byte >>> bit) & 1) === 1) numbers[found++] = at * 8 + bit;
  }
  return numbers;
}

/** A part of a snapshot of a scope. */
export interface LivePart {
  readonly part: Part;
  readonly removed: Removed;
}

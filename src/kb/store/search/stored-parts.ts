import type { WalkedPart } from "../../index/words/part.ts";
import { makeRemoved, type Removed } from "../../index/words/removed.ts";
import { openRun, type RunHead } from "../../index/words/run.ts";
import { openSegment } from "../../index/words/segment.ts";

/** A part of the index of words, as the database has it. */
export interface StoredPart {
  readonly kind: "segment" | "run";
  /** Names the part among those of its kind in the scope: number of the run, or sequence of the segment's first chunk. */
  readonly number: number;
  /** A sequence at or below that of its first chunk, and above those of the parts before. */
  readonly first: number;
  readonly part: WalkedPart;
  readonly removed: Removed;
  /** Memory that it takes while it is open. */
  readonly bytes: number;
}

/** Removed chunks: a range of sequences, within one part. */
export interface Removal {
  readonly number: number;
  readonly first: number;
  readonly last: number;
}

/** Bytes that a search needs for each chunk of a part: its saturation (word-search.ts), and whether it was removed. */
const CHUNK_BYTES = 9;

/** Opens a segment, whose first chunk has this sequence. Throws `DamagedIndex`. */
export function storedSegment(data: Buffer, first: number): StoredPart {
  const part = openSegment(data, first);
  const bytes = data.length + part.rows * CHUNK_BYTES;
  return { kind: "segment", number: first, first, part, removed: makeRemoved(part), bytes };
}

/** Opens a run. `pages` returns its pages from one to another. Throws `DamagedIndex`. */
export function storedRun(
  number: number,
  first: number,
  head: RunHead,
  pages: (from: number, to: number) => Buffer[],
): StoredPart {
  const part = openRun(head, pages);
  const { sequences, lengths, directory, filter } = head;
  const bytes = sequences.length + lengths.length + directory.length + filter.length;
  return {
    kind: "run",
    number,
    first,
    part,
    removed: makeRemoved(part),
    bytes: bytes + part.rows * CHUNK_BYTES,
  };
}

/** Marks removed chunks in the parts that hold them. Parts ascend by their first sequences. */
export function markRemoved(
  parts: readonly StoredPart[],
  removals: readonly { readonly first: number; readonly last: number }[],
): void {
  for (const { first, last } of removals) {
    let low = 0;
    let high = parts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >>> 1;
      if ((parts[middle]?.first ?? 0) <= first) low = middle;
      else high = middle - 1;
    }
    parts[low]?.removed.add(first, last);
  }
}

/** Returns the sequence of the last chunk of a part. */
export function lastSequence(of: StoredPart | undefined): number {
  return of === undefined ? -1 : of.part.sequence(of.part.rows - 1);
}

import type { PostingList } from "./postings.ts";

/**
 * An immutable part of a scope's index of words: a segment, which holds chunks of one write, or a run, which merges parts.
 * A chunk is in one part only, under an ordinal from 0 that ascends with its sequence in the scope.
 */
export interface Part {
  /** Chunks in the part, including those that were removed since. */
  readonly rows: number;
  /** Length of each chunk in words, by ordinal; at most `LENGTH_MAX`. */
  readonly lengths: Uint16Array;
  /** Returns the sequence of a chunk. */
  sequence(ordinal: number): number;
  /** Returns the first ordinal whose sequence is not below this one; `rows` if there is none. */
  ordinalFrom(sequence: number): number;
  /** Returns the chunks that contain a term; undefined: none. */
  list(hash: number): PostingList | undefined;
}

/** Longest chunk that a part can record, in words. */
export const LENGTH_MAX = 2 ** 16 - 1;

/** Walks through the terms of a part, by ascending hash. */
export interface TermCursor {
  /** Hash of the term; Infinity after the last one. */
  readonly hash: number;
  /** The term's list: bytes[start, end). */
  readonly bytes: Uint8Array;
  readonly start: number;
  readonly end: number;
  readonly count: number;
  readonly last: number;
  next(): void;
}

/** A part that can be walked through. */
export interface WalkedPart extends Part {
  /** Returns a cursor at the first term. */
  walk(): TermCursor;
}

/** Returns all terms of a part with their lists. */
export function* termsOf(part: WalkedPart): Generator<readonly [hash: number, list: PostingList]> {
  for (const at = part.walk(); at.hash !== Infinity; at.next())
    yield [at.hash, { bytes: at.bytes.slice(at.start, at.end), count: at.count, last: at.last }];
}

import { makeVocabulary } from "./vocabulary.ts";

/** The distinct terms of a text, in order of first appearance, with their counts. */
export interface Terms {
  readonly terms: readonly string[];
  /** Occurrences of each of `terms`, from 1. */
  readonly counts: readonly number[];
  /** Words without their parts and other spellings (fold.ts): the length that BM25 normalises by. */
  readonly words: number;
}

/** The terms of a text by number. The next call reuses the arrays. */
export interface Tally {
  /** The first `distinct` are the numbers of the terms, in order of first appearance. */
  readonly ids: Uint32Array;
  readonly distinct: number;
  /** Occurrences by term number; valid for the numbers in `ids` only. */
  readonly counts: Uint32Array;
  readonly words: number;
}

/** Numbers the terms of this thread. */
export const vocabulary = makeVocabulary();
/** Occurrences by term number. All 0 except for the terms of the latest tally. */
let counts = new Uint32Array(1024);
let ids = new Uint32Array(1024);
let distinct = 0;

/**
 * Splits a text into terms (see fold.ts). Texts and queries go through this same function; no character has a special
 * meaning. The result depends on the text alone: state between calls is only a cache.
 */
export function analyze(text: string): Terms {
  const tallied = tally(text);
  const numbers = [...tallied.ids.subarray(0, tallied.distinct)];
  return {
    terms: numbers.map((id) => vocabulary.termOf(id)),
    counts: numbers.map((id) => tallied.counts[id] ?? 0),
    words: tallied.words,
  };
}

/** Like `analyze`, but returns term numbers, for callers that run a thousand times a second. */
export function tally(text: string): Tally {
  clear();
  const { ids: read, length, words } = vocabulary.read(text);
  if (ids.length < length) ids = new Uint32Array(length * 2);
  for (let at = 0; at < length; at++) {
    const id = read[at] ?? 0;
    if (id >= counts.length) growCounts(id);
    const count = counts[id] ?? 0;
    if (count === 0) ids[distinct++] = id;
    counts[id] = count + 1;
  }
  return { ids, distinct, counts, words };
}

/** Counts the occurrences of each of `terms` in a text. */
export function countTerms(text: string, terms: readonly string[]): number[] {
  const tallied = tally(text);
  return terms.map((term) => {
    const id = vocabulary.idOf(term);
    return id === undefined ? 0 : (tallied.counts[id] ?? 0);
  });
}

function clear(): void {
  for (let at = 0; at < distinct; at++) counts[ids[at] ?? 0] = 0;
  distinct = 0;
}

function growCounts(id: number): void {
  const longer = new Uint32Array(2 ** Math.ceil(Math.log2(id + 2)));
  longer.set(counts);
  counts = longer;
}

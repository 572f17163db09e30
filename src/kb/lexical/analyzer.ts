import { makeVocabulary } from "./vocabulary.ts";

/** The distinct terms of a text, in order of first appearance, how often each stands there, and all of them counted. */
export interface Terms {
  readonly terms: readonly string[];
  /** Occurrences of each of `terms`, from 1. */
  readonly counts: readonly number[];
  /** The length that BM25 normalises by. */
  readonly words: number;
}

/** The terms of a text by number. The arrays are used again by the next call. */
export interface Tally {
  /** The first `distinct` are the numbers of the terms, in order of first appearance. */
  readonly ids: Uint32Array;
  readonly distinct: number;
  /** Occurrences by term number; right for the numbers in `ids` only. */
  readonly counts: Uint32Array;
  readonly words: number;
}

/** What the terms of this thread are numbered by. */
export const vocabulary = makeVocabulary();
/** Per term number: occurrences in the text under way. All 0 between calls but for the terms of the latest tally. */
let counts = new Uint32Array(1024);
let ids = new Uint32Array(1024);
let distinct = 0;

/**
 * Splits a text into terms (fold.ts tells how). Text and query go through this same function, and nothing in a text
 * has a special meaning. The result depends on the text alone; what is remembered between calls only makes it quick.
 */
export function analyze(text: string): Terms {
  const found = tally(text);
  const numbers = [...found.ids.subarray(0, found.distinct)];
  return {
    terms: numbers.map((id) => vocabulary.termOf(id)),
    counts: numbers.map((id) => found.counts[id] ?? 0),
    words: found.words,
  };
}

/** The same in numbers, for where it happens a thousand times a second. */
export function tally(text: string): Tally {
  clear();
  const { ids: read, length: words } = vocabulary.read(text);
  if (ids.length < words) ids = new Uint32Array(words * 2);
  for (let at = 0; at < words; at++) {
    const id = read[at] ?? 0;
    if (id >= counts.length) growCounts(id);
    const count = counts[id] ?? 0;
    if (count === 0) ids[distinct++] = id;
    counts[id] = count + 1;
  }
  return { ids, distinct, counts, words };
}

/** How often each of `terms` stands in a text. */
export function countTerms(text: string, terms: readonly string[]): number[] {
  const found = tally(text);
  return terms.map((term) => {
    const id = vocabulary.idOf(term);
    return id === undefined ? 0 : (found.counts[id] ?? 0);
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

import { makeVocabulary } from "./vocabulary.ts";

/** The distinct terms of a text, in order of first appearance, with their counts. */
export interface Terms {
  readonly terms: readonly string[];
  /** Occurrences of each of `terms`, from 1. */
  readonly counts: readonly number[];
  /** Words without their parts and other spellings (fold.ts): the length that BM25 normalises by. */
  readonly words: number;
}

/** Numbers the terms of this thread. */
export const vocabulary = makeVocabulary();

/**
 * Splits a text into terms (see fold.ts). Texts and queries go through this same function; no character has a special
 * meaning. The result depends on the text alone: state between calls is only a cache.
 */
export function analyze(text: string): Terms {
  const { ids, length, words } = vocabulary.read(text);
  const counts = new Map<number, number>();
  for (const id of ids.subarray(0, length)) counts.set(id, (counts.get(id) ?? 0) + 1);
  return {
    terms: [...counts.keys()].map((id) => vocabulary.termOf(id)),
    counts: [...counts.values()],
    words,
  };
}

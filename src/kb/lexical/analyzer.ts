import type { Language } from "./languages.ts";
import { makeVocabulary, type Vocabulary } from "./vocabulary.ts";

/** The distinct terms of a text, in order of first appearance, with their counts. */
export interface Terms {
  readonly terms: readonly string[];
  /** Occurrences of each of `terms`, from 1. */
  readonly counts: readonly number[];
  /** Words without their parts and other spellings (fold.ts): the length that BM25 normalises by. */
  readonly words: number;
}

/** The terms of a text by their numbers in a vocabulary. The first `length` of `ids` are valid until the next call. */
export interface NumberedTerms {
  readonly vocabulary: Vocabulary;
  readonly ids: Uint32Array;
  readonly length: number;
  readonly words: number;
}

const english = makeVocabulary();
/** Vocabularies of other languages, the last used one last. Each takes up to some 20 MB. */
const others = new Map<Language, Vocabulary>();
const OTHERS_MAX = 3;

/**
 * Splits a text into terms (see fold.ts), by the stems of the language that it is surely in, else by those of English. No
 * character has a special meaning. The result depends on the text alone: state between calls is only a cache.
 */
export function readText(text: string): NumberedTerms {
  const { language, ...read } = english.read(text);
  return language === undefined ? { vocabulary: english, ...read } : readIn(language, text);
}

function readIn(language: Language, text: string): NumberedTerms {
  const vocabulary = others.get(language) ?? makeVocabulary(language);
  others.delete(language);
  others.set(language, vocabulary);
  for (const [oldest] of others) {
    if (others.size <= OTHERS_MAX) break;
    others.delete(oldest);
  }
  return { vocabulary, ...vocabulary.read(text) };
}

/** Returns the terms of a text; `asEnglish`: as chunks have them that were indexed before other languages had stems. */
export function analyze(text: string, asEnglish = false): Terms {
  const { vocabulary, ids, length, words } = asEnglish
    ? { vocabulary: english, ...english.read(text) }
    : readText(text);
  const counts = new Map<number, number>();
  for (const id of ids.subarray(0, length)) counts.set(id, (counts.get(id) ?? 0) + 1);
  return {
    terms: [...counts.keys()].map((id) => vocabulary.termOf(id)),
    counts: [...counts.values()],
    words,
  };
}

import { readTerms } from "./fold.ts";
import { isFrequentIn, type Language } from "./languages.ts";

/** Languages that write a compound as one word. */
const COMPOUNDING: ReadonlySet<string> = new Set(["German", "Dutch", "Swedish", "Danish"]);
/** Shorter parts are endings and syllables. */
const PART_CHARS_MIN = 3;
/** A longer word is data. Bounds the splits of a word. */
const WORD_CHARS_MAX = 40;

/** A word read as two. */
export interface Split {
  readonly language: Language;
  /** In lower case, as are the tails. */
  readonly head: string;
  readonly tail: string;
}

/**
 * Returns the ways to read a word of a language as a compound of two, none in a language without compounds. Most of them are
 * nonsense: which parts are words, only a collection tells. A letter that links the parts, as in `Kündigungsfrist`, is an ending
 * that the stem of the head drops. Pure.
 */
export function splitsOf(word: string, language: Language): readonly Split[] {
  const lower = word.toLowerCase().normalize("NFC");
  const isWord = lower.length <= WORD_CHARS_MAX && /^\p{L}+$/u.test(lower);
  if (!COMPOUNDING.has(language.name) || !isWord) return [];
  const splits: Split[] = [];
  for (let at = PART_CHARS_MIN; at <= lower.length - PART_CHARS_MIN; at++) {
    const [head, tail] = [lower.slice(0, at), lower.slice(at)];
    if (!isFrequentIn(head, language) && !isFrequentIn(tail, language)) splits.push({ language, head, tail });
  }
  return splits;
}

/** Returns the terms by which a part may be indexed. Pure. */
export function partTerms(part: string, language: Language): string[] {
  return readTerms(part, language).map(({ term }) => term);
}

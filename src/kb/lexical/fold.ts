import { stem } from "./porter.ts";

/** Longest term in UTF-16 code units. Longer words are data (base64, hashes) and are found by their prefix. */
export const TERM_CHARS_MAX = 64;

const WORD = /[\p{L}\p{N}\p{M}\p{Co}]+/gu;
/** Scripts without spaces between words, and Korean, which attaches endings to words. */
const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u;

/** Returns the term of a lower-case word: its stem, truncated to TERM_CHARS_MAX. */
export function stemmed(word: string): string {
  return cut(stem(word));
}

/**
 * Returns the terms of a text, in order: runs of letters, digits and marks, stemmed, with case, compatibility forms and
 * diacritics folded. Scripts without spaces yield single characters and pairs, so that any part of a run is found. Pure.
 */
export function foldedTerms(text: string): string[] {
  // Recomposes at the end: a Hangul syllable, or a kana with its mark, is one character to search for.
  const folded = text
    .normalize("NFKD")
    .toLowerCase()
    .replaceAll(/[\u0300-\u036f]/gu, "")
    .normalize("NFC");
  return (folded.match(WORD) ?? []).flatMap((word) => (UNSPACED.test(word) ? unspaced(word) : stemmed(word)));
}

function unspaced(word: string): string[] {
  const terms: string[] = [];
  let previous = "";
  let spaced = "";
  const endSpaced = (): void => {
    if (spaced !== "") terms.push(stemmed(spaced));
    spaced = "";
  };
  for (const character of word) {
    if (UNSPACED.test(character)) {
      endSpaced();
      terms.push(character);
      if (previous !== "") terms.push(previous + character);
      previous = character;
    } else {
      spaced += character;
      previous = "";
    }
  }
  endSpaced();
  return terms;
}

/** Truncates a term without splitting a surrogate pair. */
function cut(term: string): string {
  return term.length <= TERM_CHARS_MAX ? term : term.slice(0, TERM_CHARS_MAX).replace(/[\ud800-\udbff]$/, "");
}

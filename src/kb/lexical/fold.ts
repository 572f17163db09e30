import { stem } from "./porter.ts";

/** Longest term kept, in UTF-16 code units: what is longer is data (base64, hashes), found by its beginning. */
export const TERM_CHARS_MAX = 64;

const WORD = /[\p{L}\p{N}\p{M}\p{Co}]+/gu;
/** Scripts whose words no space divides, and Korean, whose endings stick to the word. */
const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u;

/** The term of a lower-case word: its stem, cut at the longest length. */
export function stemmed(word: string): string {
  return cut(stem(word));
}

/**
 * Terms of any text, in order: runs of letters, digits and marks, with case, compatibility forms and diacritics
 * folded, and stemmed. Scripts written without spaces give single characters and pairs, so that any part of a run is
 * found. Pure.
 */
export function foldedTerms(text: string): string[] {
  // Composed again at the end: a Hangul syllable or a kana with its mark is one character to search for.
  const folded = text
    .normalize("NFKD")
    .toLowerCase()
    .replaceAll(/[\u0300-\u036f]/gu, "")
    .normalize("NFC");
  return (folded.match(WORD) ?? []).flatMap((word) => (UNSPACED.test(word) ? unspaced(word) : stemmed(word)));
}

function unspaced(word: string): string[] {
  const terms: string[] = [];
  let before = "";
  let spaced = "";
  const endSpaced = (): void => {
    if (spaced !== "") terms.push(stemmed(spaced));
    spaced = "";
  };
  for (const character of word) {
    if (UNSPACED.test(character)) {
      endSpaced();
      terms.push(character);
      if (before !== "") terms.push(before + character);
      before = character;
    } else {
      spaced += character;
      before = "";
    }
  }
  endSpaced();
  return terms;
}

/** Keeps the beginning, never half of a surrogate pair. */
function cut(term: string): string {
  return term.length <= TERM_CHARS_MAX ? term : term.slice(0, TERM_CHARS_MAX).replace(/[\ud800-\udbff]$/, "");
}

import type { Language } from "./languages.ts";
import { stem } from "./porter.ts";

/** Longest term in UTF-16 code units. Longer words are data (base64, hashes) and are found by their prefix. */
export const TERM_CHARS_MAX = 64;

const WORD = /[\p{L}\p{N}\p{M}\p{Co}]+/gu;
/** Scripts without spaces between words, and Korean, which attaches endings to words. */
const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u;

/** Returns the term of a lower-case word: its stem, truncated to TERM_CHARS_MAX. A word of another language has its mark. */
export function stemmed(word: string, language?: Language): string {
  if (language === undefined || !isOf(language, word)) return cut(stem(word));
  return cut(folded(language.stem(word))) + language.mark;
}

/** Whether a word has stems of a language. A longer one is data, for which stemmers take a time that grows with its square. */
function isOf({ script }: Language, word: string): boolean {
  return word.length <= TERM_CHARS_MAX && script.test(word);
}

/** Parts that a word may have. A word of more is data, such as a line of base64. */
const PARTS_MAX = 8;
/** Where a part begins in `getUserName`, `utf8Text` and `HTTPServer`; not in `PDFs` or `H2O`. */
const PART_START = /(?<=\p{Ll}\p{N}*)(?=\p{Lu})|(?<=\p{Lu})(?=\p{Lu}\p{Ll}{2})/u;
/** How German writes umlauts and ß on a keyboard without them. */
const SPELLINGS: ReadonlyMap<string, string> = new Map([
  ["ä", "ae"],
  ["ö", "oe"],
  ["ü", "ue"],
  ["ß", "ss"],
]);

/** A term of a text. */
export interface FoldedTerm {
  readonly term: string;
  /** A part or another spelling of the word before, which does not count as a word of its own. */
  readonly isExtra: boolean;
  /** Number of terms by which this occurrence is found: 2 for `Möhren`, found as `mohren` and as `moehren`. */
  readonly spellings: number;
}

/**
 * Returns the terms of a text, in order: runs of letters, digits and marks, stemmed, with case, compatibility forms and
 * diacritics folded. A word in mixed case is followed by its parts, and one with an umlaut by its other spelling. Scripts
 * without spaces yield single characters and pairs, so that any part of a run is found. `language`: of the text; default English.
 * Pure.
 */
export function readTerms(text: string, language?: Language): FoldedTerm[] {
  return readWords(text).flatMap((word) =>
    UNSPACED.test(word)
      ? unspaced(folded(word)).map((term) => ({ term, isExtra: false, spellings: 1 }))
      : [word, ...partsOf(word)].flatMap((part, at) => spellingsOf(part, at > 0, language)),
  );
}

/** Returns the words of a text as it writes them: `readTerms` of each gives those of the text. Pure. */
export function readWords(text: string): readonly string[] {
  return text.normalize("NFKC").match(WORD) ?? [];
}

/** Returns the terms of `readTerms`. */
export function foldedTerms(text: string): string[] {
  return readTerms(text).map(({ term }) => term);
}

/** Folds case, compatibility forms and diacritics. */
function folded(text: string): string {
  // Recomposes at the end: a Hangul syllable, or a kana with its mark, is one character to search for.
  return text
    .normalize("NFKD")
    .toLowerCase()
    .replaceAll(/[\u0300-\u036f]/gu, "")
    .normalize("NFC");
}

/** Returns the parts of a word in mixed case, of two characters at least; none for other words. */
function partsOf(word: string): readonly string[] {
  if (word.length > TERM_CHARS_MAX) return [];
  const parts = word.split(PART_START);
  if (parts.length === 1 || parts.length > PARTS_MAX) return [];
  return parts.filter((part) => part.length > 1);
}

function spellingsOf(word: string, isExtra: boolean, of: Language | undefined): FoldedTerm[] {
  const lower = word.toLowerCase().normalize("NFC");
  const language = of !== undefined && isOf(of, lower) ? of : undefined;
  const plain = folded(word);
  if (plain === "") return [];
  const written = lower.replaceAll(/[äöüß]/g, (letter) => SPELLINGS.get(letter) ?? letter);
  const terms = new Set<string>();
  // Endings have diacritics: `operación` has the stem of `operaciones`. In other scripts nobody omits them: `й` is a letter.
  if (language !== undefined) terms.add(stemmed(lower, language));
  if (language === undefined || language.isLatin) terms.add(stemmed(plain, language));
  if (written !== lower) terms.add(stemmed(folded(written), language));
  return [...terms].map((term, at) => ({ term, isExtra: isExtra || at > 0, spellings: terms.size }));
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

import { LANGUAGE_WORDS } from "../../lib/language.ts";
import { lazyModule } from "../../lib/lazy-module.ts";

/** A language whose words have stems of their own in the index. */
export interface Language {
  /** English name, as `lib/language.ts` has it. */
  readonly name: string;
  /**
   * Ends the terms of this language, and is by itself a term of each text in it. No text contains it, so that the stems of different
   * languages never meet: English texts are found by the same terms as without other languages.
   */
  readonly mark: string;
  /** Matches its words. Those in other scripts or with digits have the terms that they have in English. */
  readonly script: RegExp;
  readonly isLatin: boolean;
  /** Returns the stem of a lower-case word. Takes about 2 µs. */
  stem(this: void, word: string): string;
}

/** Begins a mark. */
export const MARK = "\u0001";
const LATIN = /^[\p{Script=Latin}\p{M}]+$/u;
const CYRILLIC = /^[\p{Script=Cyrillic}\p{M}]+$/u;
const GREEK = /^[\p{Script=Greek}\p{M}]+$/u;

/**
 * Languages that are found better by their own stems, by `node bench/languages.ts`: French, Spanish and Portuguese are not (ADR 20).
 * Each of Snowball's stemmers is loaded by the first word that it stems.
 */
export const LANGUAGES: readonly Language[] = [
  language("German", "de", LATIN, "german"),
  language("Italian", "it", LATIN, "italian"),
  language("Dutch", "nl", LATIN, "dutch"),
  language("Swedish", "sv", LATIN, "swedish"),
  language("Danish", "da", LATIN, "danish"),
  language("Turkish", "tr", LATIN, "turkish"),
  language("Russian", "ru", CYRILLIC, "russian"),
  language("Greek", "el", GREEK, "greek"),
];

function language(name: string, code: string, script: RegExp, file: string): Language {
  const load = lazyModule(
    (read) => read(`@orama/stemmers/${file}`) as { readonly stemmer: (word: string) => string },
  );
  // A stem is never empty: a word that is all ending stays as it is.
  return {
    name,
    mark: `${MARK}${code}`,
    script,
    isLatin: script === LATIN,
    stem: (word) => load().stemmer(word) || word,
  };
}

/** Bits of the languages that are distinguished in texts: English is the first, languages without stems count as well. */
const NAMES = ["English", ...new Set([...LANGUAGE_WORDS.values()].flat())].filter(
  (name, at, all) => all.indexOf(name) === at,
);
const BY_SCRIPT = LANGUAGES.filter(({ isLatin }) => !isLatin);
const COUNTS = NAMES.length + BY_SCRIPT.length;

/** Returns the languages in which a lower-case word is frequent, or whose script it is in, as bits. Pure. */
export function languageBits(word: string): number {
  let bits = 0;
  for (const name of LANGUAGE_WORDS.get(word) ?? []) bits |= 1 << NAMES.indexOf(name);
  // A single letter is a symbol, as in µm.
  if (word.length > 1)
    for (const [at, { script }] of BY_SCRIPT.entries())
      if (script.test(word)) bits |= 1 << (NAMES.length + at);
  return bits;
}

/** Whether a lower-case word is frequent in a language. Pure. */
export function isFrequentIn(word: string, { name }: Language): boolean {
  return LANGUAGE_WORDS.get(word)?.includes(name) === true;
}

/**
 * Fewest frequent words that identify a language, the least share of all words, and how many times those of English and of the
 * next language. With these, none of 17,000 chunks of five English sets is taken for another language.
 */
const FREQUENT_MIN = 3;
const SHARE_MIN = 0.12;
const LEAD_OVER_ENGLISH = 2;
const LEAD = 1.3;

/** Counts the words of a text by language. */
export function makeLanguageCounts() {
  const counts = new Int32Array(COUNTS);
  return {
    clear: () => counts.fill(0),
    /** Adds a word of these languages (`languageBits`). */
    add: (bits: number): void => {
      for (let rest = bits; rest !== 0; rest &= rest - 1) {
        const at = 31 - Math.clz32(rest & -rest);
        counts[at] = (counts[at] ?? 0) + 1;
      }
    },
    /** Returns the language of a text of so many words; undefined: English, none with stems, or in doubt. */
    languageOf: (words: number): Language | undefined => languageOfCounts(counts, words),
  };
}

/** A text that is taken for another language is found by fewer forms of its words, so in doubt it is taken for English. */
function languageOfCounts(counts: Int32Array, words: number): Language | undefined {
  let best = 0;
  let next = 0;
  let which = 0;
  for (let at = 0; at < COUNTS; at++) {
    const count = counts[at] ?? 0;
    if (count > best) {
      next = best;
      best = count;
      which = at;
    } else if (count > next) next = count;
  }
  if (which === 0 || best < FREQUENT_MIN || best < SHARE_MIN * words) return undefined;
  if (best < LEAD * next || best < LEAD_OVER_ENGLISH * (counts[0] ?? 0)) return undefined;
  const byScript = BY_SCRIPT[which - NAMES.length];
  return byScript ?? LANGUAGES.find(({ name }) => name === NAMES[which]);
}

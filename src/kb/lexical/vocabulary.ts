import { readTerms, readWords, stemmed } from "./fold.ts";
import { type Language, languageBits, makeLanguageCounts } from "./languages.ts";

/**
 * Capacity in words; a full vocabulary is cleared. A language has about 50,000 words in use, the rest are names and numbers.
 * Takes up to about 15 MB.
 */
const WORDS_MAX = 2 ** 17;
/** Capacity of the cache for words in mixed case or with other than ASCII letters, and the longest that it holds. */
const MIXED_MAX = 2 ** 14;
const MIXED_CHARS_MAX = 32;
/** Slots of the hash table: a power of two, at most half full. */
const SLOT_BITS = 18;
const SLOTS = 2 ** SLOT_BITS;
const SLOT_NUMBERS = 4;

/** Class of each UTF-8 byte: 0 separates words, NOT_ASCII is part of a multi-byte character, else the lower-case letter or digit. */
const FOLDED = new Uint8Array(256);
const NOT_ASCII = 255;
FOLDED.fill(NOT_ASCII, 128);
for (const character of "abcdefghijklmnopqrstuvwxyz0123456789") {
  FOLDED[character.charCodeAt(0)] = character.charCodeAt(0);
  FOLDED[character.toUpperCase().charCodeAt(0)] = character.charCodeAt(0);
}

/**
 * Cache from words to the numbers of their terms. Words repeat, so two hashes computed while reading a word find nearly
 * every term without making a string or comparing letters; the speed of ingest and scoring rests on this. Two words with
 * equal 64-bit hashes would share a term: at full capacity the chance is one in a billion, and it only blurs a search.
 */
export interface Vocabulary {
  /**
   * Returns the numbers of a text's terms, in order. `words` of them are words, the others parts and spellings of these
   * (fold.ts). The next call reuses the array. `language` is what the text is in, if that is not the language of the vocabulary.
   */
  read(text: string): {
    readonly ids: Uint32Array;
    readonly length: number;
    readonly words: number;
    readonly language: Language | undefined;
  };
  /** Returns the term of a number that the latest `read` returned. */
  termOf(id: number): string;
  /** Increases when the cache is cleared: numbers then stand for other terms. */
  generation(): number;
}

/** Makes an empty vocabulary of texts in a language, by default English, for one thread. */
export function makeVocabulary(language?: Language): Vocabulary {
  const slots = makeSlots();
  const counts = makeLanguageCounts();
  let known = 0;
  /** The numbers of the terms of words that `slots` cannot hold: it knows no case, and no letters but ASCII. */
  let mixed = new Map<string, MixedTerms>();
  let generation = 0;
  let terms = makeTermNumbers();
  let bytes = Buffer.alloc(2 ** 14);
  let ids = new Uint32Array(2 ** 12);
  let length = 0;
  let words = 0;

  function clear(): void {
    slots.clear();
    known = 0;
    mixed = new Map();
    generation++;
    terms = makeTermNumbers();
  }

  /** Returns the number of the term of the ASCII word at [start, end), given its hashes. */
  function lookUp(start: number, end: number, hash: number, check: number): number {
    const at = slots.placeOf(hash, check);
    const found = slots.numbers[at + 2] ?? 0;
    if (found !== 0) {
      counts.add(slots.numbers[at + 3] ?? 0);
      return found - 1;
    }
    const word = bytes.toString("latin1", start, end).toLowerCase();
    const id = terms.idOf(stemmed(word, language));
    const bits = languageBits(word);
    counts.add(bits);
    if (known < WORDS_MAX) {
      known++;
      slots.numbers.set([hash, check, id + 1, bits], at);
    }
    return id;
  }

  /** Adds the terms of a run in mixed case or with other than ASCII characters. */
  function addTerms(run: string): void {
    let found = mixed.get(run);
    if (found === undefined) {
      found = mixedTerms(run, language, terms);
      if (run.length <= MIXED_CHARS_MAX && mixed.size < MIXED_MAX) mixed.set(run, found);
    }
    for (const id of found.ids) ids[length++] = id;
    for (const bits of found.bits) counts.add(bits);
    words += found.words;
  }

  return {
    read(text) {
      if (known >= WORDS_MAX || terms.count() >= WORDS_MAX) clear();
      // UTF-8 takes at most three bytes per code unit, and a text yields at most two terms per byte, and its mark.
      if (bytes.length < text.length * 3) bytes = Buffer.alloc(text.length * 4);
      const end = bytes.write(text);
      if (ids.length < end * 2 + 1) ids = new Uint32Array(end * 2 + 1);
      length = 0;
      words = 0;
      counts.clear();
      let at = 0;
      while (at < end) {
        const start = at;
        let hash = 0;
        let check = 0x811c9dc5;
        let folded = 0;
        // The sum of the differences between upper and lower case.
        let cases = 0;
        for (; at < end; at++) {
          const byte = bytes[at] ?? 0;
          folded = FOLDED[byte] ?? 0;
          if (folded === 0 || folded === NOT_ASCII) break;
          cases += byte ^ folded;
          hash = (Math.imul(hash, 31) + folded) | 0;
          check = Math.imul(check ^ folded, 0x01000193);
        }
        if (folded === NOT_ASCII && at < end) {
          while (at < end && FOLDED[bytes[at] ?? 0] !== 0) at++;
          // A run with non-ASCII characters takes the slow path as a whole.
          addTerms(bytes.toString("utf8", start, at));
        } else if (cases > ((bytes[start] ?? 0) ^ (FOLDED[bytes[start] ?? 0] ?? 0))) {
          addTerms(bytes.toString("latin1", start, at));
        } else if (at > start) {
          ids[length++] = lookUp(start, at, hash, check);
          words++;
        }
        at++;
      }
      const other = counts.languageOf(words);
      if (language !== undefined) ids[length++] = terms.idOf(language.mark);
      return { ids, length, words, language: other === language ? undefined : other };
    },
    termOf: (id) => terms.termOf(id),
    generation: () => generation,
  };
}

/** Terms of a run that `slots` cannot hold. */
interface MixedTerms {
  readonly ids: readonly number[];
  readonly words: number;
  /** Languages of each of its words: a run with punctuation that is not ASCII has several. */
  readonly bits: readonly number[];
}

function mixedTerms(
  run: string,
  language: Language | undefined,
  terms: ReturnType<typeof makeTermNumbers>,
): MixedTerms {
  const read = readTerms(run, language);
  return {
    ids: read.map(({ term }) => terms.idOf(term)),
    words: read.filter(({ isExtra }) => !isExtra).length,
    bits: readWords(run).map((word) => languageBits(word.toLowerCase())),
  };
}

/**
 * A hash table of words, four numbers a slot: both hashes of a word, the number of its term plus one, and its languages; 0 is free.
 * Adjacent, so that a lookup touches one cache line.
 */
function makeSlots() {
  const numbers = new Int32Array(SLOTS * SLOT_NUMBERS);
  return {
    numbers,
    clear: () => numbers.fill(0),
    /** Returns where the slot of a word begins, or the free one that it may take. */
    placeOf: (hash: number, check: number): number => {
      // The product spreads words that differ in few characters, such as ids, over all slots (Knuth, TAOCP 3, 6.4).
      let at = (Math.imul(hash ^ check, 0x9e3779b1) >>> (32 - SLOT_BITS)) * SLOT_NUMBERS;
      while (numbers[at + 2] !== 0 && !(numbers[at] === hash && numbers[at + 1] === check))
        at = at + SLOT_NUMBERS === numbers.length ? 0 : at + SLOT_NUMBERS;
      return at;
    },
  };
}

/** Numbers terms in the order in which they first come. */
function makeTermNumbers() {
  const terms: string[] = [];
  const ids = new Map<string, number>();
  return {
    idOf: (term: string): number => {
      const id = ids.get(term) ?? terms.length;
      if (id === terms.length) {
        terms.push(term);
        ids.set(term, id);
      }
      return id;
    },
    termOf: (id: number): string => terms[id] ?? "",
    count: (): number => terms.length,
  };
}

import { readTerms, stemmed } from "./fold.ts";

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
   * (fold.ts). The next call reuses the array.
   */
  read(text: string): { readonly ids: Uint32Array; readonly length: number; readonly words: number };
  /** Returns the term of a number that the latest `read` returned. */
  termOf(id: number): string;
  /** Increases when the cache is cleared: numbers then stand for other terms. */
  generation(): number;
}

/** Makes an empty vocabulary, for one thread. */
export function makeVocabulary(): Vocabulary {
  // Three numbers a slot: both hashes of a word and the number of its term plus one; 0 is free. Adjacent, so that a
  // lookup touches one cache line.
  const slots = new Int32Array(SLOTS * 3);
  let known = 0;
  /** The numbers of the terms of words that `slots` cannot hold: it knows no case, and no letters but ASCII. */
  let mixed = new Map<string, { readonly ids: readonly number[]; readonly words: number }>();
  let generation = 0;
  let terms = makeTermNumbers();
  let bytes = Buffer.alloc(2 ** 14);
  let ids = new Uint32Array(2 ** 12);
  let length = 0;
  let words = 0;

  function clear(): void {
    slots.fill(0);
    known = 0;
    mixed = new Map();
    generation++;
    terms = makeTermNumbers();
  }

  /** Returns the number of the term of the ASCII word at [start, end), given its hashes. */
  function lookUp(start: number, end: number, hash: number, check: number): number {
    // The product spreads words that differ in few characters, such as ids, over all slots (Knuth, TAOCP 3, 6.4).
    let at = (Math.imul(hash ^ check, 0x9e3779b1) >>> (32 - SLOT_BITS)) * 3;
    for (;;) {
      const found = slots[at + 2] ?? 0;
      if (found === 0) break;
      if (slots[at] === hash && slots[at + 1] === check) return found - 1;
      at = at + 3 === slots.length ? 0 : at + 3;
    }
    const id = terms.idOf(stemmed(bytes.toString("latin1", start, end).toLowerCase()));
    if (known < WORDS_MAX) {
      known++;
      slots[at] = hash;
      slots[at + 1] = check;
      slots[at + 2] = id + 1;
    }
    return id;
  }

  /** Adds the terms of a run in mixed case or with other than ASCII characters. */
  function addTerms(run: string): void {
    let found = mixed.get(run);
    if (found === undefined) {
      const read = readTerms(run);
      found = {
        ids: read.map(({ term }) => terms.idOf(term)),
        words: read.filter(({ isExtra }) => !isExtra).length,
      };
      if (run.length <= MIXED_CHARS_MAX && mixed.size < MIXED_MAX) mixed.set(run, found);
    }
    for (const id of found.ids) ids[length++] = id;
    words += found.words;
  }

  return {
    read(text) {
      if (known >= WORDS_MAX || terms.count() >= WORDS_MAX) clear();
      // UTF-8 takes at most three bytes per code unit, and a text yields at most two terms per byte.
      if (bytes.length < text.length * 3) bytes = Buffer.alloc(text.length * 4);
      const end = bytes.write(text);
      if (ids.length < end * 2) ids = new Uint32Array(end * 2);
      length = 0;
      words = 0;
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
      return { ids, length, words };
    },
    termOf: (id) => terms.termOf(id),
    generation: () => generation,
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

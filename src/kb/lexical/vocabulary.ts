import { foldedTerms, stemmed } from "./fold.ts";

/**
 * Most words remembered; then all are forgotten. A language has some 50,000 in use, the rest are names and numbers.
 * Costs up to some 15 MB.
 */
const WORDS_MAX = 2 ** 17;
/** Slots of the hash table: a power of two, kept at most half full. */
const SLOTS = WORDS_MAX * 2;

/** Bytes of UTF-8 by what they are: 0 divides words, NOT_ASCII is part of another character, else the lower-case letter or digit. */
const FOLDED = new Uint8Array(256);
const NOT_ASCII = 255;
FOLDED.fill(NOT_ASCII, 128);
for (const character of "abcdefghijklmnopqrstuvwxyz0123456789") {
  FOLDED[character.charCodeAt(0)] = character.charCodeAt(0);
  FOLDED[character.toUpperCase().charCodeAt(0)] = character.charCodeAt(0);
}

/**
 * Words seen lately, and the term each of them becomes. Words repeat, so the term of nearly every word is found by two
 * hashes computed while the word is read, without making a string of it or comparing letters: this is what the speed
 * of ingest and of scoring rests on. Two words with the same 64 bits would be taken for one: among as many words as are
 * remembered that has a chance of one in a billion, and would only blur a search.
 */
export interface Vocabulary {
  /** Numbers of the terms of a text, in order. The array is used again by the next call. */
  read(text: string): { readonly ids: Uint32Array; readonly length: number };
  /** The term of a number that the latest `read` gave. */
  termOf(id: number): string;
  /** Number of a term, if it was seen since the words were last forgotten. */
  idOf(term: string): number | undefined;
  /** Grows when the words are forgotten: numbers then stand for other terms. */
  generation(): number;
}

/** Makes an empty vocabulary, for one thread. */
export function makeVocabulary(): Vocabulary {
  // Three numbers a slot: both hashes of a word, and the number of its term plus one; 0 is free. Side by side, so that
  // a look-up touches one line of the processor's cache.
  const slots = new Int32Array(SLOTS * 3);
  let words = 0;
  let generation = 0;
  let terms: string[] = [];
  let termIds = new Map<string, number>();
  let bytes = Buffer.alloc(2 ** 14);
  let ids = new Uint32Array(2 ** 12);
  let length = 0;

  function forget(): void {
    slots.fill(0);
    words = 0;
    generation++;
    terms = [];
    termIds = new Map();
  }

  function idOfTerm(term: string): number {
    let id = termIds.get(term);
    if (id === undefined) {
      id = terms.length;
      terms.push(term);
      termIds.set(term, id);
    }
    return id;
  }

  /** Number of the term of the ASCII word at [start, end), whose hashes are known. */
  function look(start: number, end: number, hash: number, check: number): number {
    let at = ((hash ^ (hash >>> 15)) & (SLOTS - 1)) * 3;
    for (;;) {
      const found = slots[at + 2] ?? 0;
      if (found === 0) break;
      if (slots[at] === hash && slots[at + 1] === check) return found - 1;
      at = at + 3 === slots.length ? 0 : at + 3;
    }
    const id = idOfTerm(stemmed(bytes.toString("latin1", start, end).toLowerCase()));
    if (words < WORDS_MAX) {
      words++;
      slots[at] = hash;
      slots[at + 1] = check;
      slots[at + 2] = id + 1;
    }
    return id;
  }

  return {
    read(text) {
      if (words >= WORDS_MAX || terms.length >= WORDS_MAX) forget();
      // UTF-8 has at most three bytes a code unit, and a text at most two terms a byte.
      if (bytes.length < text.length * 3) bytes = Buffer.alloc(text.length * 4);
      const end = bytes.write(text);
      if (ids.length < end * 2) ids = new Uint32Array(end * 2);
      length = 0;
      let at = 0;
      while (at < end) {
        const start = at;
        let hash = 0;
        let check = 0x811c9dc5;
        let folded = 0;
        for (; at < end; at++) {
          folded = FOLDED[bytes[at] ?? 0] ?? 0;
          if (folded === 0 || folded === NOT_ASCII) break;
          hash = (Math.imul(hash, 31) + folded) | 0;
          check = Math.imul(check ^ folded, 0x01000193);
        }
        if (folded === NOT_ASCII && at < end) {
          while (at < end && FOLDED[bytes[at] ?? 0] !== 0) at++;
          // A run with other characters in it goes the long way as a whole.
          for (const term of foldedTerms(bytes.toString("utf8", start, at))) ids[length++] = idOfTerm(term);
        } else if (at > start) {
          ids[length++] = look(start, at, hash, check);
        }
        at++;
      }
      return { ids, length };
    },
    termOf: (id) => terms[id] ?? "",
    idOf: (term) => termIds.get(term),
    generation: () => generation,
  };
}

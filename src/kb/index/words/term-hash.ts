import { readText } from "../../lexical/analyzer.ts";
import type { Vocabulary } from "../../lexical/vocabulary.ts";

/** Bits of a term's hash. With 500,000 different terms, two of them share a hash with a probability of 0.2 %. */
export const HASH_BITS = 46;
/** Bytes of a hash in the index. */
export const HASH_BYTES = 6;

const LOW = 2 ** 23;

/** Hashes a term to an integer of `HASH_BITS` bits: the index stores no term texts. Pure. */
export function hashOf(term: string): number {
  let high = 0x811c9dc5;
  let low = 0x050c5d1f;
  for (let at = 0; at < term.length; at++) {
    const unit = term.charCodeAt(at);
    high = Math.imul(high ^ unit, 0x01000193);
    low = Math.imul(low ^ unit, 0x5bd1e995);
  }
  // The last steps of MurmurHash3: without them the last letters would hardly change the high bits.
  return (mixed(high) >>> 9) * LOW + (mixed(low) >>> 9);
}

function mixed(hash: number): number {
  let bits = hash ^ (hash >>> 16);
  bits = Math.imul(bits, 0x85ebca6b);
  bits ^= bits >>> 13;
  bits = Math.imul(bits, 0xc2b2ae35);
  return bits ^ (bits >>> 16);
}

/** Reads a hash: faster than `readUIntBE`, and searches and merges read nothing more often. */
export function readHash(bytes: Uint8Array, at: number): number {
  const high = ((bytes[at] ?? 0) << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0);
  const low = ((bytes[at + 3] ?? 0) << 16) | ((bytes[at + 4] ?? 0) << 8) | (bytes[at + 5] ?? 0);
  return high * 2 ** 24 + low;
}

/** Hashes of the terms of a vocabulary. */
interface KnownHashes {
  /** Plus one, by term number; 0: not computed yet. */
  hashes: Float64Array;
  /** Generation of the vocabulary that they belong to. */
  generation: number;
}
const known = new WeakMap<Vocabulary, KnownHashes>();

/** The first `length` are the hashes of a text's terms, in order; `words` of them are words. The next call reuses the array. */
export interface HashedTerms {
  readonly hashes: Float64Array;
  readonly length: number;
  readonly words: number;
}

/** Hashes the terms of a text. */
export function hashedTerms(text: string): HashedTerms {
  const { vocabulary, ids, length, words } = readText(text);
  const of = knownOf(vocabulary);
  let { hashes } = of;
  if (found.length < length) found = new Float64Array(length * 2);
  for (let at = 0; at < length; at++) {
    const id = ids[at] ?? 0;
    if (id >= hashes.length) hashes = of.hashes = longer(hashes, id + 1);
    let hash = hashes[id] ?? 0;
    if (hash === 0) hash = hashes[id] = hashOf(vocabulary.termOf(id)) + 1;
    found[at] = hash - 1;
  }
  return { hashes: found, length, words };
}

function knownOf(vocabulary: Vocabulary): KnownHashes {
  let of = known.get(vocabulary);
  if (of === undefined) known.set(vocabulary, (of = { hashes: new Float64Array(2 ** 12), generation: -1 }));
  if (of.generation !== vocabulary.generation()) {
    of.generation = vocabulary.generation();
    of.hashes.fill(0);
  }
  return of;
}

let found = new Float64Array(2 ** 12);

function longer(numbers: Float64Array, lengthMin: number): Float64Array<ArrayBuffer> {
  const grown = new Float64Array(2 ** Math.ceil(Math.log2(lengthMin + 1)));
  grown.set(numbers);
  return grown;
}

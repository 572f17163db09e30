import { LENGTH_MAX, type TermCursor, type WalkedPart } from "./part.ts";
import { eachPosting, makeByteWriter, measured, writePosting } from "./postings.ts";
import { seal, unseal } from "../seal.ts";
import { HASH_BITS, HASH_BYTES, hashedTerms, readHash } from "./term-hash.ts";

/** Maximum chunks of a segment. Ordinal and hash fit into one safe integer, so that numbers sort instead of objects. */
export const SEGMENT_ROWS_MAX = 2 ** (53 - HASH_BITS);

/**
 * Encodes chunks as a segment: the number of chunks and their lengths, the number of terms, their hashes, the ends of their
 * posting lists, the lists, and a checksum. `texts` are the indexed texts, at most `SEGMENT_ROWS_MAX`.
 */
export function encodeSegment(texts: readonly string[]): { data: Buffer<ArrayBuffer>; words: number[] } {
  let occurrences = 0;
  const words = texts.map((text, ordinal) => {
    const { hashes, length, words: count } = hashedTerms(text);
    while (keys.length < occurrences + length) keys = longer(keys);
    for (let at = 0; at < length; at++) keys[occurrences++] = (hashes[at] ?? 0) * SEGMENT_ROWS_MAX + ordinal;
    return count;
  });
  const sorted = keys.subarray(0, occurrences).sort();

  const hashes: number[] = [];
  const ends: number[] = [];
  let current = -1;
  let previous = -1;
  for (let at = 0; at < occurrences;) {
    const key = sorted[at] ?? 0;
    const hash = Math.floor(key / SEGMENT_ROWS_MAX);
    const ordinal = key % SEGMENT_ROWS_MAX;
    let times = 1;
    while (at + times < occurrences && sorted[at + times] === key) times++;
    at += times;
    if (hash !== current) {
      if (current >= 0) ends.push(lists.length());
      hashes.push(hash);
      current = hash;
      previous = -1;
    }
    writePosting(lists, previous, ordinal, times);
    previous = ordinal;
  }
  ends.push(lists.length());
  const encoded = lists.take();

  const endBytes = encoded.length < 2 ** 16 ? 2 : 4;
  segment.uint(texts.length, 1);
  for (const count of words) segment.uint(Math.min(count, LENGTH_MAX), 2);
  segment.uint(hashes.length, 4);
  segment.uint(endBytes, 1);
  for (const hash of hashes) segment.uint(hash, HASH_BYTES);
  for (const end of ends.slice(0, hashes.length)) segment.uint(end, endBytes);
  segment.bytes(encoded, 0, encoded.length);
  return { data: seal(segment.take()), words };
}

/** Hashes and ordinals of all words of the segment that is being encoded. */
let keys = new Float64Array(2 ** 14);
const lists = makeByteWriter();
const segment = makeByteWriter();

function longer(numbers: Float64Array): Float64Array<ArrayBuffer> {
  const grown = new Float64Array(numbers.length * 2);
  grown.set(numbers);
  return grown;
}

/** Opens a segment; `first` is the sequence of its first chunk. Throws `DamagedIndex`. */
export function openSegment(sealed: Buffer, first: number): WalkedPart {
  const data = unseal(sealed, `segment ${first}`);
  const rows = data.readUInt8(0);
  const lengths = new Uint16Array(rows);
  for (let at = 0; at < rows; at++) lengths[at] = data.readUInt16BE(1 + 2 * at);
  const head = 1 + 2 * rows;
  const count = data.readUInt32BE(head);
  const endBytes = data.readUInt8(head + 4);
  const hashes = head + 5;
  const ends = hashes + HASH_BYTES * count;
  const start = ends + endBytes * count;
  const hashAt = (at: number): number => readHash(data, hashes + HASH_BYTES * at);
  const endAt = (at: number): number => {
    let end = 0;
    for (let byte = ends + endBytes * at; byte < ends + endBytes * (at + 1); byte++)
      end = end * 256 + (data[byte] ?? 0);
    return start + end;
  };

  return {
    rows,
    lengths,
    sequence: (ordinal) => first + ordinal,
    ordinalFrom: (sequence) => Math.min(rows, Math.max(0, sequence - first)),
    list(hash) {
      let low = 0;
      let high = count - 1;
      while (low <= high) {
        const middle = (low + high) >>> 1;
        const found = hashAt(middle);
        if (found === hash)
          return measured(data.subarray(middle === 0 ? start : endAt(middle - 1), endAt(middle)));
        if (found < hash) low = middle + 1;
        else high = middle - 1;
      }
      return undefined;
    },
    walk() {
      let at = -1;
      const cursor = { hash: 0, bytes: data, start, end: start, count: 0, last: -1 };
      const next = (): void => {
        at++;
        cursor.hash = at < count ? hashAt(at) : Infinity;
        if (at >= count) return;
        cursor.start = cursor.end;
        cursor.end = endAt(at);
        cursor.count = 0;
        eachPosting(
          data,
          (ordinal) => {
            cursor.count++;
            cursor.last = ordinal;
          },
          cursor.start,
          cursor.end,
        );
      };
      next();
      return Object.assign(cursor, { next }) satisfies TermCursor;
    },
  };
}

/**
 * A posting list as bytes: for each chunk with a term, ascending, the distance to the one before and the number of
 * occurrences, as varints. The low two bits of the first varint are the occurrences minus one; 3 means that a second varint
 * follows with the rest. Most postings take one byte.
 */
export interface PostingList {
  readonly bytes: Uint8Array;
  /** Number of postings. */
  readonly count: number;
  /** Ordinal of the last posting. */
  readonly last: number;
  /** Made when the list is first looked up in. */
  skips?: Skips;
}

/** Where a list can be entered: at every `SKIP`th posting. */
interface Skips {
  /** Ordinal of the posting before. */
  readonly ordinals: Uint32Array;
  readonly offsets: Uint32Array;
}

/** Postings between two entries of a list: reading them takes a fraction of a microsecond. */
const SKIP = 32;

/** From this number of occurrences on, a second varint follows. */
const MANY = 4;

/** Writes varints and bytes to a buffer that grows. */
export interface ByteWriter {
  readonly length: () => number;
  varint(value: number): void;
  /** An unsigned integer of `bytes` bytes, at most 6, the high byte first. */
  uint(value: number, bytes: number): void;
  bytes(source: Uint8Array, from: number, to: number): void;
  /** Returns a copy of what was written, and starts over. */
  take(): Buffer<ArrayBuffer>;
}

export function makeByteWriter(): ByteWriter {
  let buffer = Buffer.alloc(2 ** 12);
  let length = 0;
  const reserve = (bytes: number): void => {
    if (length + bytes <= buffer.length) return;
    const grown = Buffer.alloc(Math.max(buffer.length * 2, length + bytes));
    buffer.copy(grown, 0, 0, length);
    buffer = grown;
  };
  return {
    length: () => length,
    varint(value) {
      reserve(5);
      let rest = value;
      while (rest > 127) {
        buffer[length++] = (rest & 127) | 128;
        rest >>>= 7;
      }
      buffer[length++] = rest;
    },
    uint(value, bytes) {
      reserve(bytes);
      length = buffer.writeUIntBE(value, length, bytes);
    },
    bytes(source, from, to) {
      reserve(to - from);
      // For a handful of bytes a loop is faster than any call.
      if (to - from > 32) buffer.set(source.subarray(from, to), length);
      else for (let at = from; at < to; at++) buffer[length + at - from] = source[at] ?? 0;
      length += to - from;
    },
    take() {
      const taken = Buffer.from(buffer.subarray(0, length));
      length = 0;
      return taken;
    },
  };
}

/** Appends a posting. `previous` is the ordinal of the posting before, -1 for the first. */
export function writePosting(to: ByteWriter, previous: number, ordinal: number, times: number): void {
  to.varint(((ordinal - previous - 1) << 2) | (Math.min(times, MANY) - 1));
  if (times >= MANY) to.varint(times - MANY);
}

/** Reads varints. */
export interface ByteReader {
  at: number;
}

/** Reads the varint at the reader's position. */
export function readVarint(bytes: Uint8Array, reader: ByteReader): number {
  let value = 0;
  let shift = 0;
  for (;;) {
    const byte = bytes[reader.at++] ?? 0;
    value |= (byte & 127) << shift;
    if (byte < 128) return value >>> 0;
    shift += 7;
  }
}

/** Calls `visit` for each posting of the list at bytes[start, end), ascending. */
export function eachPosting(
  bytes: Uint8Array,
  visit: (ordinal: number, times: number) => void,
  start = 0,
  end: number = bytes.length,
): void {
  const reader = { at: start };
  let ordinal = -1;
  while (reader.at < end) {
    const value = readVarint(bytes, reader);
    ordinal += (value >>> 2) + 1;
    const times = (value & 3) + 1;
    visit(ordinal, times < MANY ? times : MANY + readVarint(bytes, reader));
  }
}

/**
 * Looks up the first `count` of `wanted`, ordinals that ascend, in a list. Writes to `times` how often the term occurs in each
 * of the chunks. A search spends much of its time here, so it reads the varints itself.
 */
export function lookUp(list: PostingList, wanted: Uint32Array, count: number, times: Uint32Array): void {
  const { bytes } = list;
  const { ordinals, offsets } = (list.skips ??= makeSkips(list));
  let at = 0;
  let block = 0;
  let ordinal = -1;
  let found = 0;
  for (let index = 0; index < count; index++) {
    const sought = wanted[index] ?? 0;
    const entered = blockOf(ordinals, block, sought);
    if (entered > block) {
      block = entered;
      ordinal = ordinals[block] ?? 0;
      at = offsets[block] ?? 0;
    }
    while (ordinal < sought && at < bytes.length) {
      let value = bytes[at++] ?? 0;
      if (value > 127) {
        value &= 127;
        for (let shift = 7; ; shift += 7) {
          const byte = bytes[at++] ?? 0;
          value |= (byte & 127) << shift;
          if (byte < 128) break;
        }
      }
      ordinal += (value >>> 2) + 1;
      found = (value & 3) + 1;
      if (found < MANY) continue;
      for (let shift = 0; ; shift += 7) {
        const byte = bytes[at++] ?? 0;
        found += (byte & 127) << shift;
        if (byte < 128) break;
      }
    }
    times[index] = ordinal === sought ? found : 0;
  }
}

/** Returns the last block that begins below an ordinal, from this block on. */
function blockOf(ordinals: Uint32Array, from: number, sought: number): number {
  let low = from;
  let high = ordinals.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >>> 1;
    if ((ordinals[middle] ?? 0) < sought) low = middle;
    else high = middle - 1;
  }
  return low;
}

const NO_SKIPS: Skips = { ordinals: new Uint32Array(), offsets: new Uint32Array() };

function makeSkips({ bytes, count }: PostingList): Skips {
  if (count <= SKIP) return NO_SKIPS;
  const blocks = Math.ceil(count / SKIP);
  const ordinals = new Uint32Array(blocks);
  const offsets = new Uint32Array(blocks);
  const reader = { at: 0 };
  let ordinal = -1;
  for (let at = 0; at < count; at++) {
    if (at % SKIP === 0 && at > 0) {
      ordinals[at / SKIP] = ordinal;
      offsets[at / SKIP] = reader.at;
    }
    const value = readVarint(bytes, reader);
    ordinal += (value >>> 2) + 1;
    if ((value & 3) + 1 === MANY) readVarint(bytes, reader);
  }
  return { ordinals, offsets };
}

/** Reads a list that is known by its bytes alone. */
export function measured(bytes: Uint8Array): PostingList {
  let count = 0;
  let last = -1;
  eachPosting(bytes, (ordinal) => {
    count++;
    last = ordinal;
  });
  return { bytes, count, last };
}

/** Appends a list to one that ends at `previous`, each of its ordinals raised by `shift`. Copies all but the first varint. */
export function appendShifted(
  to: ByteWriter,
  previous: number,
  { bytes, start, end }: { readonly bytes: Uint8Array; readonly start: number; readonly end: number },
  shift: number,
): void {
  const reader = { at: start };
  const first = readVarint(bytes, reader);
  to.varint((((first >>> 2) + shift - previous - 1) << 2) | (first & 3));
  to.bytes(bytes, reader.at, end);
}

/** From one member in this many sequences on, a bitmap takes less memory than numbers. */
const BITS_PER_NUMBER = 32;
/** Growth factor of a full array. */
const GROWTH = 1.25;

/**
 * An append-only list of ascending sequences (rows within a scope): numbers if sparse, a bitmap if dense. So a list takes
 * at most a bit for each chunk of the scope: 125 KB for a million.
 */
export interface RowList {
  readonly length: number;
  readonly bytes: number;
  /** Appends ascending sequences, all above those in the list. */
  append(sequences: readonly number[]): void;
  /** Returns the sequences in [first, last]. The next call on any list may reuse the array. */
  within(first: number, last: number): Uint32Array;
  /** Adds `weight` to `sums[sequence - first]` for each sequence in [first, first + size). */
  addTo(sums: Float32Array, first: number, size: number, weight: number): void;
}

/** Makes an empty list. */
export function makeRowList(): RowList {
  let length = 0;
  /** The sequences; empty once the list is a bitmap. */
  let numbers = new Uint32Array(4);
  let bits: Uint32Array | undefined;

  function set(into: Uint32Array, sequence: number): void {
    const word = sequence >>> 5;
    into[word] = (into[word] ?? 0) | (1 << (sequence & 31));
  }

  function appendBits(bitmap: Uint32Array, sequences: readonly number[], last: number): void {
    const words = (last >>> 5) + 1;
    const grown = words <= bitmap.length ? bitmap : longer(bitmap, words);
    for (const sequence of sequences) set(grown, sequence);
    bits = grown;
  }

  return {
    get length() {
      return length;
    },
    get bytes() {
      return numbers.byteLength + (bits?.byteLength ?? 0);
    },
    append(sequences) {
      const last = sequences.at(-1);
      if (last === undefined) return;
      const count = length + sequences.length;
      if (bits === undefined && count * BITS_PER_NUMBER > last) {
        const made = new Uint32Array((last >>> 5) + 1);
        for (const sequence of numbers.subarray(0, length)) set(made, sequence);
        numbers = new Uint32Array(0);
        bits = made;
      }
      if (bits !== undefined) appendBits(bits, sequences, last);
      else {
        if (count > numbers.length) numbers = longer(numbers, count);
        numbers.set(sequences, length);
      }
      length = count;
    },
    within(first, last) {
      if (bits !== undefined) return read(bits, first, last);
      const end =
        length === 0 || (numbers[length - 1] ?? 0) <= last ? length : lowerBound(numbers, length, last + 1);
      return numbers.subarray(first === 0 ? 0 : lowerBound(numbers, length, first), end);
    },
    addTo(sums, first, size, weight) {
      if (bits !== undefined) {
        addBits(bits, sums, first, size, weight);
        return;
      }
      const end = lowerBound(numbers, length, first + size);
      for (let at = lowerBound(numbers, length, first); at < end; at++) {
        const offset = (numbers[at] ?? 0) - first;
        sums[offset] = (sums[offset] ?? 0) + weight;
      }
    },
  };
}

function addBits(bits: Uint32Array, sums: Float32Array, first: number, size: number, weight: number): void {
  const last = first + size - 1;
  const wordLast = Math.min(last >>> 5, bits.length - 1);
  for (let word = first >>> 5; word <= wordLast; word++) {
    const base = (word << 5) - first;
    // Clears the lowest set bit in each step.
    for (let rest = bits[word] ?? 0; rest !== 0; rest &= rest - 1) {
      const offset = base + 31 - Math.clz32(rest & -rest);
      // The first and the last word extend beyond the range.
      if (offset >= 0 && offset < size) sums[offset] = (sums[offset] ?? 0) + weight;
    }
  }
}

/** Result of `within` for bitmaps, shared by all lists: allocating it would make megabytes of garbage per search. */
let unpacked = new Uint32Array(1024);

function read(bits: Uint32Array, first: number, last: number): Uint32Array {
  const wordLast = Math.min(last >>> 5, bits.length - 1);
  if (unpacked.length < bits.length * 32) unpacked = new Uint32Array(bits.length * 32);
  let count = 0;
  for (let word = first >>> 5; word <= wordLast; word++) {
    const base = word << 5;
    // Clears the lowest set bit in each step.
    for (let rest = bits[word] ?? 0; rest !== 0; rest &= rest - 1) {
      unpacked[count++] = base + 31 - Math.clz32(rest & -rest);
    }
  }
  return unpacked.subarray(lowerBound(unpacked, count, first), lowerBound(unpacked, count, last + 1));
}

/** Returns the index of the first number not below `from` among the first `length`, which ascend. */
function lowerBound(numbers: Uint32Array, length: number, from: number): number {
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((numbers[middle] ?? 0) < from) low = middle + 1;
    else high = middle;
  }
  return low;
}

function longer(numbers: Uint32Array, lengthMin: number): Uint32Array<ArrayBuffer> {
  const grown = new Uint32Array(Math.ceil(lengthMin * GROWTH));
  grown.set(numbers);
  return grown;
}

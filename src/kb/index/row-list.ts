/** A list that names more than one of so many sequences takes less memory as a bit each than as numbers. */
const BITS_PER_NUMBER = 32;
/** By how much an array grows that is full. */
const GROWTH = 1.25;

/**
 * Sequences (rows within a scope) in ascending order, appended to as chunks are added: as numbers where they are few, as
 * bits where they are many. So no list is larger than a bit for each chunk of the scope: 125 KB at a million.
 */
export interface RowList {
  readonly length: number;
  readonly bytes: number;
  /** Appends ascending sequences, all behind those in the list. */
  append(sequences: readonly number[]): void;
  /** Those in [first, last]. The array may be used again by the next call for any list. */
  within(first: number, last: number): Uint32Array;
  /** Adds a weight at each of those in [first, first + size), by their distance from `first`. */
  addTo(sums: Float32Array, first: number, size: number, weight: number): void;
}

/** Makes an empty list. */
export function makeRowList(): RowList {
  let length = 0;
  /** The sequences; empty once they are kept as bits. */
  let numbers = new Uint32Array(4);
  let bits: Uint32Array | undefined;

  function set(into: Uint32Array, sequence: number): void {
    const word = sequence >>> 5;
    into[word] = (into[word] ?? 0) | (1 << (sequence & 31));
  }

  function appendBits(known: Uint32Array, sequences: readonly number[], last: number): void {
    const words = (last >>> 5) + 1;
    const roomy = words <= known.length ? known : longer(known, words);
    for (const sequence of sequences) set(roomy, sequence);
    bits = roomy;
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
        length === 0 || (numbers[length - 1] ?? 0) <= last ? length : place(numbers, length, last + 1);
      return numbers.subarray(first === 0 ? 0 : place(numbers, length, first), end);
    },
    addTo(sums, first, size, weight) {
      if (bits !== undefined) {
        addBits(bits, sums, first, size, weight);
        return;
      }
      const end = place(numbers, length, first + size);
      for (let at = place(numbers, length, first); at < end; at++) {
        const distance = (numbers[at] ?? 0) - first;
        sums[distance] = (sums[distance] ?? 0) + weight;
      }
    },
  };
}

function addBits(bits: Uint32Array, sums: Float32Array, first: number, size: number, weight: number): void {
  const last = first + size - 1;
  const wordLast = Math.min(last >>> 5, bits.length - 1);
  for (let word = first >>> 5; word <= wordLast; word++) {
    const base = (word << 5) - first;
    // Unset lowest bits one by one.
    for (let rest = bits[word] ?? 0; rest !== 0; rest &= rest - 1) {
      const distance = base + 31 - Math.clz32(rest & -rest);
      // The first and the last word reach beyond the range.
      if (distance >= 0 && distance < size) sums[distance] = (sums[distance] ?? 0) + weight;
    }
  }
}

/** What `within` of bits gives, for all lists: a copy would be garbage of megabytes a search. */
let unpacked = new Uint32Array(1024);

function read(bits: Uint32Array, first: number, last: number): Uint32Array {
  const wordLast = Math.min(last >>> 5, bits.length - 1);
  if (unpacked.length < bits.length * 32) unpacked = new Uint32Array(bits.length * 32);
  let count = 0;
  for (let word = first >>> 5; word <= wordLast; word++) {
    const base = word << 5;
    // Unset lowest bits one by one.
    for (let rest = bits[word] ?? 0; rest !== 0; rest &= rest - 1) {
      unpacked[count++] = base + 31 - Math.clz32(rest & -rest);
    }
  }
  return unpacked.subarray(place(unpacked, count, first), place(unpacked, count, last + 1));
}

/** Where the first number from `from` on stands among the first `length`, which ascend. */
function place(numbers: Uint32Array, length: number, from: number): number {
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((numbers[middle] ?? 0) < from) low = middle + 1;
    else high = middle;
  }
  return low;
}

function longer(numbers: Uint32Array, least: number): Uint32Array<ArrayBuffer> {
  const made = new Uint32Array(Math.ceil(least * GROWTH));
  made.set(numbers);
  return made;
}

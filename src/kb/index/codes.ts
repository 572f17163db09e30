import { LANE_BYTES, scanCodes } from "./code-scan.ts";
import { dotValues, scaleOf, valuesOf } from "./quantized.ts";
import type { RowRange } from "./rows.ts";

/**
 * 1-bit codes: the signs of a vector's differences from the mean of its neighbours in the store. Two vectors whose
 * codes differ in few bits have a large cosine; a scan over codes costs a thirtieth of one over floats. Without
 * taking the mean off, real embeddings, which share a direction, would have nearly the same code.
 */
export interface CodeList {
  readonly size: number;
  /** Appends the code of a vector, and what is stored of it where that is kept. */
  add(row: number, vector: Float32Array, stored: Buffer): void;
  /** Takes out all codes of rows in the ranges, which ascend and do not overlap. */
  removeRanges(ranges: readonly RowRange[]): void;
  /**
   * Places in the list, of rows in [first, last] whose codes are nearest to the vector's, about `count` and at least that many if there are.
   * `isAllowed` leaves rows out. They hold until the list changes.
   */
  nearest(
    vector: Float32Array,
    first: number,
    last: number,
    count: number,
    isAllowed?: (row: number) => boolean,
  ): number[];
  rowAt(place: number): number;
  /** Cosine of a vector and the one at a place; undefined where what is stored is not kept. */
  cosineAt(place: number, vector: Float32Array): number | undefined;
  /** Memory for codes. */
  readonly bytes: number;
  /** Memory for what is stored of the vectors. */
  readonly storedBytes: number;
  /** Keeps nothing any more but codes. */
  dropStored(): void;
}

/** By how much a full list grows: a doubling would leave up to half of it empty. */
const GROWTH = 1.3;
const LANE_WORDS = LANE_BYTES / 4;

/**
 * Makes an empty list for vectors of so many dimensions, centred on `mean`. It keeps what is stored of them as long as
 * that is at most `storedBytesMax`: to read it again from the database costs ten times the cosine.
 */
export function makeCodeList(mean: Float32Array, storedBytesMax: number): CodeList {
  const dimensions = mean.length;
  const words = Math.max(1, Math.ceil(dimensions / 32 / LANE_WORDS)) * LANE_WORDS;
  let rows = new Float64Array(1024);
  let codes = new Uint32Array(1024 * words);
  let distances = new Uint16Array(1024);
  let stored: { values: Int8Array; scales: Float32Array } | undefined = storedOf(1024);
  let size = 0;
  let firstRow = Infinity;
  let lastRow = -1;
  const asked = new Uint32Array(words);

  function encode(vector: Float32Array, into: Uint32Array, offset: number): void {
    for (let word = 0; word * 32 < dimensions; word++) {
      let bits = 0;
      const end = Math.min(32, dimensions - word * 32);
      for (let bit = 0; bit < end; bit++) {
        const at = word * 32 + bit;
        if ((vector[at] ?? 0) > (mean[at] ?? 0)) bits |= 1 << bit;
      }
      into[offset + word] = bits >>> 0;
    }
  }

  function grow(): void {
    const capacity = Math.ceil(rows.length * GROWTH);
    rows = copied(rows, new Float64Array(capacity));
    codes = copied(codes, new Uint32Array(capacity * words));
    distances = new Uint16Array(capacity);
    const larger = stored && storedOf(capacity);
    larger?.values.set(stored?.values ?? []);
    larger?.scales.set(stored?.scales ?? []);
    stored = larger;
  }

  function storedOf(capacity: number): { values: Int8Array; scales: Float32Array } | undefined {
    if (capacity * (dimensions + Float32Array.BYTES_PER_ELEMENT) > storedBytesMax) return undefined;
    return { values: new Int8Array(capacity * dimensions), scales: new Float32Array(capacity) };
  }

  /** Whether each row may be found: undefined where all may, which saves asking for a million of them. */
  function test(
    first: number,
    last: number,
    isAllowed: ((row: number) => boolean) | undefined,
  ): ((at: number) => boolean) | undefined {
    if (isAllowed === undefined && first <= firstRow && last >= lastRow) return undefined;
    return (at) => {
      const row = rows[at] ?? 0;
      return row >= first && row <= last && isAllowed?.(row) !== false;
    };
  }

  return {
    get size() {
      return size;
    },
    get bytes() {
      return rows.byteLength + codes.byteLength + distances.byteLength;
    },
    get storedBytes() {
      return stored === undefined ? 0 : stored.values.byteLength + stored.scales.byteLength;
    },
    dropStored() {
      stored = undefined;
    },
    rowAt: (place) => rows[place] ?? 0,
    cosineAt: (place, vector) =>
      stored && dotValues(vector, stored.values, place * dimensions) * (stored.scales[place] ?? 0),
    add(row, vector, bytes) {
      if (size === rows.length) grow();
      rows[size] = row;
      encode(vector, codes, size * words);
      if (stored !== undefined) {
        stored.values.set(valuesOf(bytes), size * dimensions);
        stored.scales[size] = scaleOf(bytes);
      }
      firstRow = Math.min(firstRow, row);
      lastRow = Math.max(lastRow, row);
      size++;
    },
    removeRanges(ranges) {
      // New rows lie behind all others, so most calls end here.
      const known = ranges.filter(({ first, last }) => first <= lastRow && last >= firstRow);
      if (known.length === 0) return;
      let kept = 0;
      for (let at = 0; at < size; at++) {
        const row = rows[at] ?? 0;
        if (isWithin(row, known)) continue;
        if (kept !== at) {
          rows[kept] = row;
          codes.copyWithin(kept * words, at * words, (at + 1) * words);
          stored?.values.copyWithin(kept * dimensions, at * dimensions, (at + 1) * dimensions);
          stored?.scales.copyWithin(kept, at, at + 1);
        }
        kept++;
      }
      size = kept;
    },
    nearest(vector, first, last, count, isAllowed) {
      encode(vector, asked, 0);
      scanCodes(bytesOf(codes), size, bytesOf(asked), distances);
      const isWanted = test(first, last, isAllowed);
      const histogram = new Uint32Array(words * 32 + 1);
      for (let at = 0; at < size; at++) {
        if (isWanted !== undefined && !isWanted(at)) continue;
        const distance = distances[at] ?? 0;
        histogram[distance] = (histogram[distance] ?? 0) + 1;
      }
      let threshold = 0;
      for (let seen = histogram[0] ?? 0; seen < count && threshold < words * 32;)
        seen += histogram[++threshold] ?? 0;
      const found: number[] = [];
      for (let at = 0; at < size; at++) {
        if ((distances[at] ?? 0) > threshold) continue;
        if (isWanted === undefined || isWanted(at)) found.push(at);
      }
      return found;
    },
  };
}

function copied<T extends Float64Array | Uint32Array>(from: T, to: T): T {
  to.set(from);
  return to;
}

function bytesOf(words: Uint32Array): Uint8Array {
  return new Uint8Array(words.buffer, words.byteOffset, words.byteLength);
}

/** Whether a row lies in one of some ascending ranges. */
function isWithin(row: number, ranges: readonly RowRange[]): boolean {
  let low = 0;
  let high = ranges.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((ranges[middle]?.last ?? 0) < row) low = middle + 1;
    else high = middle;
  }
  return (ranges[low]?.first ?? Infinity) <= row;
}

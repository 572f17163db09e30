import { bytesOf, type CodeRun } from "./code-run.ts";
import { LANE_BYTES, scanCodes } from "./code-scan.ts";
import { dotValues, scaleOf, valuesOf } from "./quantized.ts";
import type { RowRange } from "./rows.ts";

/**
 * A list of 1-bit codes: the signs of a vector's differences from the mean of its neighbours in the store. Vectors whose
 * codes differ in few bits have a large cosine; a scan over codes costs a thirtieth of a scan over floats. Real embeddings
 * share a direction: without subtracting the mean, their codes would be nearly equal.
 */
export interface CodeList {
  readonly size: number;
  /** Appends the code of a vector, and its quantised form while that is cached. */
  add(row: number, vector: Float32Array, stored: Buffer): void;
  /** Appends codes that were made with the same mean. */
  addRun(firstRow: number, run: CodeRun): void;
  /** Caches the quantised form of the vector in a slot, unless that needs more memory than the list may have. */
  cache(slot: number, stored: Buffer): void;
  /** Removes the codes of all rows in the ranges, which ascend and do not overlap. */
  removeRanges(ranges: readonly RowRange[]): void;
  /**
   * Returns the slots of the rows in [first, last] whose codes are nearest to the vector's: at least `count` if there are as
   * many, and more on a tie. `isAllowed` filters rows. Slots are valid until the list changes.
   */
  nearest(
    vector: Float32Array,
    first: number,
    last: number,
    count: number,
    isAllowed?: (row: number) => boolean,
  ): number[];
  rowAt(slot: number): number;
  /** Cosine of a vector and the vector in a slot; undefined while its quantised form is not cached. */
  cosineAt(slot: number, vector: Float32Array): number | undefined;
  /** Memory for codes. */
  readonly bytes: number;
  /** Memory for cached quantised vectors. */
  readonly storedBytes: number;
  /** Drops the cached quantised vectors for good; codes stay. */
  dropStored(): void;
}

/** Growth factor of a full list: doubling would leave up to half of it empty. */
const GROWTH = 1.3;
/** Slots of an empty list. */
const CAPACITY_MIN = 1024;
const LANE_WORDS = LANE_BYTES / 4;

/** Length of the codes of vectors of so many dimensions, in words of 32 bits. */
export function codeWords(dimensions: number): number {
  return Math.max(1, Math.ceil(dimensions / 32 / LANE_WORDS)) * LANE_WORDS;
}

/** Returns the codes of so many vectors, one after the other. A vector may be overwritten after it was taken. */
export function encodeAll(
  vectors: Iterable<Float32Array>,
  count: number,
  mean: Float32Array,
): Uint32Array<ArrayBuffer> {
  const words = codeWords(mean.length);
  const codes = new Uint32Array(count * words);
  let at = 0;
  for (const vector of vectors) encode(vector, mean, codes, words * at++);
  return codes;
}

/**
 * Makes an empty list for vectors of the dimensions of `mean`, centred on it. Caches the quantised vectors up to
 * `storedBytesMax`, because reading one from the database costs ten times its cosine. Beyond that, keeps codes alone. Has
 * space for `expected` codes from the start.
 */
export function makeCodeList(mean: Float32Array, storedBytesMax: number, expected = 0): CodeList {
  const words = codeWords(mean.length);
  const capacity = Math.max(CAPACITY_MIN, expected);
  let rows = new Float64Array(capacity);
  let codes = new Uint32Array(capacity * words);
  let distances = new Uint16Array(capacity);
  const stored = cacheVectors(mean.length, capacity, storedBytesMax);
  let size = 0;
  let firstRow = Infinity;
  let lastRow = -1;
  const query = new Uint32Array(words);

  function grow(): void {
    const larger = Math.ceil(rows.length * GROWTH);
    rows = copied(rows, new Float64Array(larger));
    codes = copied(codes, new Uint32Array(larger * words));
    distances = new Uint16Array(larger);
    stored.grow(larger);
  }

  /** Returns a filter by slot; undefined if every row passes, which saves a million calls. */
  function slotFilter(
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
      return stored.bytes();
    },
    dropStored: stored.drop,
    rowAt: (slot) => rows[slot] ?? 0,
    cosineAt: stored.cosineAt,
    add(row, vector, bytes) {
      if (size === rows.length) grow();
      rows[size] = row;
      encode(vector, mean, codes, size * words);
      stored.put(size, bytes);
      firstRow = Math.min(firstRow, row);
      lastRow = Math.max(lastRow, row);
      size++;
    },
    addRun(first, run) {
      while (size + run.offsets.length > rows.length) grow();
      codes.set(run.codes, size * words);
      for (const offset of run.offsets) {
        stored.clear(size);
        rows[size++] = first + offset;
      }
      firstRow = Math.min(firstRow, first + (run.offsets[0] ?? Infinity));
      lastRow = Math.max(lastRow, rows[size - 1] ?? -1);
    },
    cache: stored.put,
    removeRanges(ranges) {
      // New rows lie behind all others, so most calls return here.
      const overlapping = ranges.filter(({ first, last }) => first <= lastRow && last >= firstRow);
      if (overlapping.length === 0) return;
      let end = 0;
      for (let at = 0; at < size; at++) {
        const row = rows[at] ?? 0;
        if (isWithin(row, overlapping)) continue;
        if (end !== at) {
          rows[end] = row;
          codes.copyWithin(end * words, at * words, (at + 1) * words);
          stored.move(at, end);
        }
        end++;
      }
      size = end;
    },
    nearest(vector, first, last, count, isAllowed) {
      encode(vector, mean, query, 0);
      scanCodes(bytesOf(codes), size, bytesOf(query), distances);
      return nearestSlots(distances, size, words * 32, count, slotFilter(first, last, isAllowed));
    },
  };
}

/** Writes the code of a vector: a bit for each dimension, set if the vector is above the mean. */
function encode(vector: Float32Array, mean: Float32Array, into: Uint32Array, offset: number): void {
  for (let word = 0; word * 32 < mean.length; word++) {
    let bits = 0;
    const end = Math.min(32, mean.length - word * 32);
    for (let bit = 0; bit < end; bit++) {
      const at = word * 32 + bit;
      if ((vector[at] ?? 0) > (mean[at] ?? 0)) bits |= 1 << bit;
    }
    into[offset + word] = bits >>> 0;
  }
}

/** Returns the slots up to the least distance that `count` of them have, of at most `distanceMax`. */
function nearestSlots(
  distances: Uint16Array,
  size: number,
  distanceMax: number,
  count: number,
  passes: ((slot: number) => boolean) | undefined,
): number[] {
  const histogram = new Uint32Array(distanceMax + 1);
  for (let at = 0; at < size; at++) {
    if (passes !== undefined && !passes(at)) continue;
    const distance = distances[at] ?? 0;
    histogram[distance] = (histogram[distance] ?? 0) + 1;
  }
  let threshold = 0;
  for (let seen = histogram[0] ?? 0; seen < count && threshold < distanceMax;)
    seen += histogram[++threshold] ?? 0;
  const slots: number[] = [];
  for (let at = 0; at < size; at++) {
    if ((distances[at] ?? 0) > threshold) continue;
    if (passes === undefined || passes(at)) slots.push(at);
  }
  return slots;
}

/** Caches the quantised vectors of the slots, for as long as all of them fit `bytesMax`. */
function cacheVectors(dimensions: number, expected: number, bytesMax: number) {
  const makeFor = (capacity: number): { values: Int8Array; scales: Float32Array } | undefined => {
    if (capacity * (dimensions + Float32Array.BYTES_PER_ELEMENT) > bytesMax) return undefined;
    return { values: new Int8Array(capacity * dimensions), scales: new Float32Array(capacity) };
  };
  let cached = makeFor(expected);

  return {
    bytes: (): number => (cached === undefined ? 0 : cached.values.byteLength + cached.scales.byteLength),
    drop: (): void => {
      cached = undefined;
    },
    grow: (capacity: number): void => {
      const larger = cached && makeFor(capacity);
      larger?.values.set(cached?.values ?? []);
      larger?.scales.set(cached?.scales ?? []);
      cached = larger;
    },
    put: (slot: number, bytes: Buffer): void => {
      if (cached === undefined) return;
      cached.values.set(valuesOf(bytes), slot * dimensions);
      cached.scales[slot] = scaleOf(bytes);
    },
    clear: (slot: number): void => {
      if (cached !== undefined) cached.scales[slot] = 0;
    },
    move: (from: number, to: number): void => {
      cached?.values.copyWithin(to * dimensions, from * dimensions, (from + 1) * dimensions);
      cached?.scales.copyWithin(to, from, from + 1);
    },
    // No stored vector has the scale 0.
    cosineAt: (slot: number, vector: Float32Array): number | undefined => {
      const scale = cached?.scales[slot] ?? 0;
      if (cached === undefined || scale === 0) return undefined;
      return dotValues(vector, cached.values, slot * dimensions) * scale;
    },
  };
}

function copied<T extends Float64Array | Uint32Array>(from: T, to: T): T {
  to.set(from);
  return to;
}

/** Whether a row lies in one of the ranges, which ascend. */
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

import type { Connection } from "../database/connection.ts";
import { dequantize, dimensionsOf } from "../../../index/quantized.ts";

/** Reads the vectors of consecutive rows of one model, ascending; a limit of -1 is none. */
export interface VectorRange {
  all(first: number, last: number, model: number, limit: number): StoredVector[];
  iterate(first: number, last: number, model: number, limit: number): Iterable<StoredVector>;
}

export type StoredVector = readonly [row: number, value: Buffer];

export function prepareVectorRange(db: Connection): VectorRange {
  return db
    .prepare<[first: number, last: number, model: number, limit: number], StoredVector>(
      "SELECT row, value FROM vector WHERE row BETWEEN ? AND ? AND model = ? ORDER BY row LIMIT ?",
    )
    .raw();
}

/**
 * The mean is computed from samples spread over the scope. The mean of thousands of vectors differs from that of all by a
 * hundredth of a vector's distance to it, and reading all vectors twice would double the time to load a scope.
 */
const MEAN_SAMPLES = 128;
const MEAN_VECTORS_PER_SAMPLE = 64;

/** Returns the mean of samples of the vectors from row `first` up to `end`, exclusive; empty: there are none. */
export function meanOf(vectors: VectorRange, first: number, end: number, model: number): Float32Array {
  const step = Math.max(MEAN_VECTORS_PER_SAMPLE, Math.ceil((end - first) / MEAN_SAMPLES));
  let sum = new Float32Array(0);
  let count = 0;
  for (let from = first; from < end; from += step) {
    for (const [, value] of vectors.iterate(from, from + step - 1, model, MEAN_VECTORS_PER_SAMPLE)) {
      const vector = unpack(value);
      if (count === 0) sum = new Float32Array(vector.length);
      for (let at = 0; at < sum.length; at++) sum[at] = (sum[at] ?? 0) + (vector[at] ?? 0);
      count++;
    }
  }
  return sum.map((value) => value / count);
}

/** Unpacks a stored vector. The next call reuses the array. */
export function unpack(value: Buffer): Float32Array {
  const dimensions = dimensionsOf(value);
  if (unpacked.length !== dimensions) unpacked = new Float32Array(dimensions);
  dequantize(value, unpacked);
  return unpacked;
}

let unpacked = new Float32Array(0);

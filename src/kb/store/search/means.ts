import { dequantize, dimensionsOf } from "../../index/quantized.ts";
import type { RowRange } from "../../index/rows.ts";

/** A vector as it is stored. */
export type StoredVector = readonly [row: number, value: Buffer];

/**
 * The mean is computed from samples spread over the scope. The mean of thousands of vectors differs from that of all by a
 * hundredth of a vector's distance to it, and reading all vectors twice would double the time to load a scope.
 */
const MEAN_SAMPLES = 128;
export const MEAN_VECTORS_PER_SAMPLE = 64;

/** Returns the ranges of rows of which at most `MEAN_VECTORS_PER_SAMPLE` vectors each are read for the mean. */
export function samplesWithin(first: number, end: number): RowRange[] {
  const step = Math.max(MEAN_VECTORS_PER_SAMPLE, Math.ceil((end - first) / MEAN_SAMPLES));
  const ranges: RowRange[] = [];
  for (let from = first; from < end; from += step) ranges.push({ first: from, last: from + step - 1 });
  return ranges;
}

/** Returns the mean of vectors; empty: there are none. */
export function meanOfSamples(samples: readonly (readonly StoredVector[])[]): Float32Array {
  let sum = new Float32Array(0);
  let count = 0;
  for (const [, value] of samples.flat()) {
    const vector = unpack(value);
    if (count === 0) sum = new Float32Array(vector.length);
    for (let at = 0; at < sum.length; at++) sum[at] = (sum[at] ?? 0) + (vector[at] ?? 0);
    count++;
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

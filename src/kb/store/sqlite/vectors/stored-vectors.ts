import type { Connection } from "../database/connection.ts";
import {
  MEAN_VECTORS_PER_SAMPLE,
  meanOfSamples,
  samplesWithin,
  type StoredVector,
} from "../../search/means.ts";

/** Reads the vectors of consecutive rows of one model, ascending; a limit of -1 is none. */
export interface VectorRange {
  all(first: number, last: number, model: number, limit: number): StoredVector[];
  iterate(first: number, last: number, model: number, limit: number): Iterable<StoredVector>;
}

export function prepareVectorRange(db: Connection): VectorRange {
  return db
    .prepare<[first: number, last: number, model: number, limit: number], StoredVector>(
      "SELECT row, value FROM vector WHERE row BETWEEN ? AND ? AND model = ? ORDER BY row LIMIT ?",
    )
    .raw();
}

/** Returns the mean of samples of the vectors from row `first` up to `end`, exclusive; empty: there are none. */
export function meanOf(vectors: VectorRange, first: number, end: number, model: number): Float32Array {
  return meanOfSamples(
    samplesWithin(first, end).map(({ first: from, last }) =>
      vectors.all(from, last, model, MEAN_VECTORS_PER_SAMPLE),
    ),
  );
}

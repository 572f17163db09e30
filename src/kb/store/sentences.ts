import type { RowText, Scope } from "./records.ts";

/**
 * Vectors of the sentences of chunks, which the tier `high_accuracy` uses to rank the best hits. They are written with
 * their chunks or later, and removed with them in the same transaction. A chunk has sentence vectors of one model only.
 */
export interface SentenceStore {
  /** Scores the best sentence of each of these chunks. Leaves out chunks without sentence vectors of that fingerprint. */
  sentenceMatches(query: RowsQuery): Promise<readonly SentenceMatch[]>;
  /**
   * Returns up to `limit` chunks of collections of the tier `high_accuracy`, after row `afterRow` and ordered by row, that
   * have no sentence vectors of this fingerprint.
   */
  chunksWithoutSentences(fingerprint: string, afterRow: number, limit: number): Promise<readonly RowText[]>;
  /** Replaces the sentence vectors of these chunks. Ignores chunks that no longer exist. */
  putSentences(fingerprint: string, chunks: readonly RowSentences[]): Promise<void>;
}

export interface RowsQuery {
  readonly scope: Scope;
  readonly vector: Float32Array;
  readonly fingerprint: string;
  readonly rows: readonly number[];
}

export interface SentenceMatch {
  readonly row: number;
  /** Cosine of the sentence nearest to the vector, [-1, 1]; accurate to 0.02, because the vectors are stored coarsely. */
  readonly cosine: number;
}

export interface RowSentences {
  readonly row: number;
  /** Unit vectors; empty for a chunk without a sentence. */
  readonly vectors: readonly Float32Array[];
}

import type { RowText, Scope } from "./records.ts";

/**
 * What the store tells of single chunks' vectors, and what it keeps of their sentences: vectors, by which the tier `high_accuracy` puts the best hits
 * in order. They come with their chunks or afterwards, and go with them in the same transaction. A chunk has those of one
 * model only.
 */
export interface SentenceStore {
  /** The best sentence of each of these chunks; one without sentence vectors of that fingerprint is left out. */
  sentenceMatches(query: RowsQuery): Promise<readonly SentenceMatch[]>;
  /**
   * Chunks in collections of the tier `high_accuracy` behind row `afterRow`, by row, that have no sentence vectors of
   * this fingerprint; up to `limit`.
   */
  chunksWithoutSentences(fingerprint: string, afterRow: number, limit: number): Promise<readonly RowText[]>;
  /** Replaces what the chunks had; one that is gone meanwhile is left out. */
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
  /** Of the sentence nearest to the vector, [-1, 1]; off by up to 0.02, for the vectors are kept coarsely. */
  readonly cosine: number;
}

export interface RowSentences {
  readonly row: number;
  /** Unit vectors; none for a chunk without a sentence. */
  readonly vectors: readonly Float32Array[];
}

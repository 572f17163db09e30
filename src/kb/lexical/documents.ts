import { idf, saturation } from "./bm25.ts";

/** A word of a query. */
export interface DocumentTerm {
  /** Factor of its occurrences in the query. */
  readonly factor: number;
  /** Share of all chunks that hold it, [0, 1]. */
  readonly share: number;
}

/** A document as a bag of words. */
export interface WholeDocument {
  /** Occurrences of each of the query's words. */
  readonly counts: readonly number[];
  /** All its words, from 1. */
  readonly words: number;
  /** From 1. */
  readonly chunks: number;
}

/**
 * BM25 of whole documents, to be compared with each other. How many documents hold a word follows from how many chunks do, as if
 * words fell into chunks by chance: of a document with n chunks, that one of them holds a word of the share p has the
 * probability 1 − (1 − p)ⁿ. The documents themselves give the means of length and of n: long ones elsewhere in the
 * scope would make every word a common one. Pure.
 *
 * On the train queries of SciFact the nDCG@10 of `high_accuracy` is 0.746 with it and 0.741 without; with the chunks' own
 * shares in place of these 0.002 less, with the mean length of each document's chunks 0.003 less.
 */
export function documentScores(
  documents: readonly WholeDocument[],
  terms: readonly DocumentTerm[],
  chunksInAll: number,
): number[] {
  const count = Math.max(1, documents.length);
  const wordsMean = documents.reduce((sum, { words }) => sum + words, 0) / count;
  const chunksMean = Math.max(1, documents.reduce((sum, { chunks }) => sum + chunks, 0) / count);
  const all = chunksInAll / chunksMean;
  const weights = terms.map(({ factor, share }) => factor * idf((1 - (1 - share) ** chunksMean) * all, all));
  return documents.map(({ counts, words }) =>
    weights.reduce((sum, weight, at) => {
      const times = counts[at] ?? 0;
      return times === 0 ? sum : sum + weight * saturation(times, words, wordsMean);
    }, 0),
  );
}

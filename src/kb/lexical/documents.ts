import { idf, saturation } from "./bm25.ts";

/** A term of a query. */
export interface DocumentTerm {
  /** Factor of the term's occurrences in the query. */
  readonly factor: number;
  /** Share of all chunks that contain the term, [0, 1]. */
  readonly share: number;
}

/** A document as a bag of words. */
export interface WholeDocument {
  /** Occurrences of each term of the query. */
  readonly counts: readonly number[];
  /** Length in words, from 1. */
  readonly words: number;
  /** Number of chunks, from 1. */
  readonly chunks: number;
}

/**
 * Returns the BM25 of whole documents, comparable among them. Estimates document frequencies from chunk frequencies, as if
 * words fell into chunks at random: a document of n chunks contains a word of the share p with the probability
 * 1 − (1 − p)ⁿ. The means of length and of n come from the given documents, because long documents elsewhere in the scope
 * would make every word common. Pure.
 *
 * On SciFact's train queries `high_accuracy` has an nDCG@10 of 0.746 with these scores and 0.741 without. With the chunks'
 * shares instead of the estimate it loses 0.002, with the mean length of each document's chunks 0.003.
 */
export function documentScores(
  documents: readonly WholeDocument[],
  terms: readonly DocumentTerm[],
  scopeChunks: number,
): number[] {
  const count = Math.max(1, documents.length);
  const wordsMean = documents.reduce((sum, { words }) => sum + words, 0) / count;
  const chunksMean = Math.max(1, documents.reduce((sum, { chunks }) => sum + chunks, 0) / count);
  const all = scopeChunks / chunksMean;
  const weights = terms.map(({ factor, share }) => factor * idf((1 - (1 - share) ** chunksMean) * all, all));
  return documents.map(({ counts, words }) =>
    weights.reduce((sum, weight, at) => {
      const times = counts[at] ?? 0;
      return times === 0 ? sum : sum + weight * saturation(times, words, wordsMean);
    }, 0),
  );
}

/** Term saturation and length normalisation of BM25, the values of SQLite's FTS5 and Lucene. */
export const K1 = 1.2;
export const B = 0.75;

/**
 * Chunks without any word that are thought to be there too: a scope of few chunks says little about how common a word
 * is, and without them a word of every chunk would weigh nothing in a scope of one.
 */
const CHUNKS_ASSUMED = 50;
/**
 * Least weight of a term, so that a chunk with words of the query is always a hit, if only just. Any term that stands in
 * more than half of many chunks has it.
 */
export const IDF_MIN = 0.01;

/**
 * Weight of a term that `holding` of `all` chunks contain: Robertson's and Spärck Jones' form, as in FTS5, by which a term
 * in more than half of them is worth next to nothing. On the train queries of SciFact it is ahead of the form with
 * 1 + inside the logarithm (nDCG@10 0.699 against 0.696). More than all, which a list with chunks that are gone may name,
 * count as all.
 */
export function idf(holding: number, all: number): number {
  const held = Math.min(holding, all);
  return Math.max(IDF_MIN, Math.log((all + CHUNKS_ASSUMED - held + 0.5) / (held + 0.5)));
}

/** What `count` occurrences in a chunk of `words` words are worth, [0, K1 + 1): the factor that idf is multiplied by. */
export function saturation(count: number, words: number, wordsMean: number): number {
  return (count * (K1 + 1)) / (count + K1 * (1 - B + (B * words) / wordsMean));
}

/**
 * Factor for a term that stands `times` times in the query. A repeated stem counts more than once but less than each
 * time: on the train queries of SciFact 0.696 against 0.690 nDCG@10 for counting each; counting it once lost.
 */
export function queryFactor(times: number): number {
  return Math.sqrt(times);
}

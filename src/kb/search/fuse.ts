import type { WordMatch } from "../lexical/word-match.ts";
import type { ChunkRef } from "../store/chunks.ts";
import type { LexicalHit, VectorHit } from "../store/search-index.ts";

/** Number of chunks that each kind of search contributes to the fused list. */
export const FUSED_DEPTH = 100;
/** Weight of the lexical score in the mix if the words of the best chunk are the usual share of the query. */
const LEXICAL_SHARE = 0.5;
/** Usual share of the query, by weight, that the best chunk by words contains. */
const COVERAGE_USUAL = 0.7;
/** The weight, and how much it changes with the coverage. `node bench/fit.ts` compares others. */
export const WORD_WEIGHTS = { share: LEXICAL_SHARE, perCoverage: 0.2 };

/** A chunk in the fused list. */
export interface Fused {
  readonly ref: ChunkRef;
  /** Fused score, [0, 1]; 1 for a chunk that is best by words and by vector. */
  readonly mix: number;
  /** BM25 divided by the best BM25. */
  readonly words: number;
  /** Weight of `words` in the mix. */
  readonly wordShare: number;
  /** Undefined for a chunk without a vector. */
  readonly cosine: number | undefined;
}

/**
 * Returns the weight of the lexical score in the mix for a query. A best hit by words that has few of the query's words says that
 * the texts use other words: then the words decide less. `best` is its match, `total` the weight of the query. On five judged sets
 * the weight gains 0.005 nDCG@10 over a constant half (docs/BENCHMARKS.md). Pure.
 */
export function lexicalShare(
  best: WordMatch | undefined,
  total: number,
  { share, perCoverage }: typeof WORD_WEIGHTS = WORD_WEIGHTS,
): number {
  const coverage = best === undefined || total <= 0 ? COVERAGE_USUAL : best.matched / total;
  return share + perCoverage * (coverage - COVERAGE_USUAL);
}

/**
 * Merges lexical hits and nearest vectors, each at most `depth` long and best first. Divides BM25 by the best BM25,
 * stretches the cosines to [0, 1] and takes the mean, in which words have the weight `lexicalWeight`. A chunk that matches no query word has a BM25 of 0. `others` holds
 * the cosines of chunks that only the lexical search found: counting them as 0 because they are not among the nearest
 * cost 0.005 nDCG@10 on SciFact's train queries.
 *
 * A chunk without a vector is ranked by its lexical score alone: a vector that is still pending says nothing about the
 * chunk.
 *
 * On four judged sets this mean was never clearly below reciprocal rank fusion. Sorted by mix, ties by ref. Pure.
 */
export function fuse(
  lexical: readonly LexicalHit[],
  nearest: readonly VectorHit[],
  others: readonly VectorHit[] = [],
  depth: number = FUSED_DEPTH,
  lexicalWeight: number = LEXICAL_SHARE,
): Fused[] {
  const bm25Max = lexical[0]?.bm25 ?? 1;
  const cosines = [...nearest, ...others];
  const wordsOf = new Map(lexical.map(({ ref, bm25 }) => [ref, bm25 / bm25Max]));
  const cosineOf = new Map(cosines.map(({ ref, cosine }) => [ref, cosine]));
  const stretched = stretch(cosines, nearest.length < depth);
  // Without a lexical hit the cosine has all the weight.
  const share = lexical.length > 0 ? lexicalWeight : 0;
  return [...new Set([...wordsOf.keys(), ...cosineOf.keys()])]
    .map((ref) => {
      const words = wordsOf.get(ref) ?? 0;
      const cosine = cosineOf.get(ref);
      if (cosine === undefined) return { ref, mix: words, words, wordShare: 1, cosine };
      return { ref, mix: share * words + (1 - share) * stretched(cosine), words, wordShare: share, cosine };
    })
    .sort((a, b) => b.mix - a.mix || a.ref - b.ref);
}

/**
 * Maps the largest cosine to 1 and the smallest to 0. If the list holds every chunk of the scope, maps 0 to 0 instead: the
 * farthest of a few chunks may still be near.
 */
function stretch(cosines: readonly VectorHit[], isAll: boolean): (cosine: number) => number {
  let max = -Infinity;
  let min = isAll ? 0 : Infinity;
  for (const { cosine } of cosines) {
    max = Math.max(max, cosine);
    min = Math.min(min, Math.max(0, cosine));
  }
  return (cosine) => (max > min ? Math.max(0, (cosine - min) / (max - min)) : 1);
}

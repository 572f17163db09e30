import type { LexicalHit, VectorHit } from "../store/store.ts";

/** Chunks each way of searching hands to the mix. */
export const FUSED_DEPTH = 100;
/** Weight of the words in the mix; the vectors have the rest. */
const LEXICAL_SHARE = 0.5;

/** A chunk in the merged list. */
export interface Fused {
  readonly row: number;
  /** [0, 1], 1 for a chunk that is best by words and by vector. */
  readonly mix: number;
}

/**
 * Merges the results by words and by vectors, each at most FUSED_DEPTH and best first: the scores of each list are
 * stretched to reach from 0 to 1, and their mean is taken; a chunk missing from a list has 0 there. On four judged
 * sets this was never clearly below reciprocal rank fusion, and on SciFact above it (0.729 to 0.715 nDCG@10). Sorted
 * by mix, ties by row. Pure.
 */
export function fuse(lexical: readonly LexicalHit[], nearest: readonly VectorHit[]): Fused[] {
  const mixes = new Map<number, number>();
  const stretchWords = stretch(lexical.map(({ bm25 }) => bm25));
  for (const { row, bm25 } of lexical) mixes.set(row, LEXICAL_SHARE * stretchWords(bm25));
  const stretchCosine = stretch(nearest.map(({ cosine }) => cosine));
  for (const { row, cosine } of nearest) {
    mixes.set(row, (mixes.get(row) ?? 0) + (1 - LEXICAL_SHARE) * stretchCosine(cosine));
  }
  return [...mixes].map(([row, mix]) => ({ row, mix })).sort((a, b) => b.mix - a.mix || a.row - b.row);
}

/**
 * Maps the largest score to 1, and to 0 what a chunk outside the list has at most: the last score of a full list;
 * nothing, where all there is stands in the list.
 */
function stretch(scores: readonly number[]): (score: number) => number {
  const most = scores[0] ?? 0;
  const least = scores.length < FUSED_DEPTH ? 0 : (scores.at(-1) ?? 0);
  return (score) => (most > least ? Math.max(0, (score - least) / (most - least)) : 1);
}

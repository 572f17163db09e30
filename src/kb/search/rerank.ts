import type { ChunkRef } from "../store/chunks.ts";

/** Number of hits from the top of the fused list that are reranked by their documents or by a reranking model. */
export const RERANKED_DEPTH = 50;
/**
 * Weight of the best sentence's raw cosine in the ranking; the fused mix has the rest. The same weight applies against the
 * chunk's own cosine in the evidence for a score. On four judged sets 0.2 to 0.3 never hurt. Stretching the cosine to
 * [0, 1] helped SciFact's train queries but not its test queries.
 */
export const SENTENCE_SHARE = 0.25;

/** A hit and its rank score. */
export interface Ranked {
  readonly ref: ChunkRef;
  /** Rank score, [0, 1], higher is better. */
  readonly mix: number;
}

/**
 * Blends judgements into the ranking: the new mix is `(1 - share) × mix + share × judgement`. A hit without a judgement
 * gets `fallback`. Returns the hits unchanged if there are no judgements. Judgements lie in [0, 1]. Sorted by mix, ties by
 * ref. Pure.
 */
export function blend<T extends Ranked>(
  hits: readonly T[],
  judgements: ReadonlyMap<ChunkRef, number>,
  share: number,
  fallback: number,
): readonly T[] {
  if (judgements.size === 0) return hits;
  const mixOf = ({ ref, mix }: Ranked): number =>
    (1 - share) * mix + share * (judgements.get(ref) ?? fallback);
  return hits.map((hit) => ({ ...hit, mix: mixOf(hit) })).sort((a, b) => b.mix - a.mix || a.ref - b.ref);
}

/** Mean of the judgements, the estimate for a hit without one; 0 if there are none. Pure. */
export function meanJudgement(judgements: ReadonlyMap<ChunkRef, number>): number {
  let sum = 0;
  for (const judgement of judgements.values()) sum += judgement;
  return judgements.size === 0 ? 0 : sum / judgements.size;
}

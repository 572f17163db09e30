/** Hits of the fused list that are judged by their documents, or by a reranking model. */
export const RERANKED_DEPTH = 50;
/**
 * Share of the best sentence's cosine, as it is, in the order of the hits; the fused mix has the rest. It has the same share beside
 * the chunk's own cosine in the evidence for a score. On four
 * judged sets 0.2 to 0.3 never hurt. Stretched to reach from 0 to 1 it helped SciFact's train queries and not its test
 * queries.
 */
export const SENTENCE_SHARE = 0.25;
/** A hit with what it is ranked by. */
export interface Ranked {
  readonly row: number;
  /** [0, 1], the larger the better. */
  readonly mix: number;
}

/**
 * Puts the judged hits in a new order: the new mix is the mean of the old one and the judgement in [0, 1], by share. A hit
 * without a judgement is taken to be judged `otherwise`; where nothing is judged, nothing moves. Sorted by mix, ties by row. Pure.
 */
export function mixIn<T extends Ranked>(
  hits: readonly T[],
  judged: ReadonlyMap<number, number>,
  share: number,
  otherwise: number,
): readonly T[] {
  if (judged.size === 0) return hits;
  const mixOf = ({ row, mix }: Ranked): number => (1 - share) * mix + share * (judged.get(row) ?? otherwise);
  return hits.map((hit) => ({ ...hit, mix: mixOf(hit) })).sort((a, b) => b.mix - a.mix || a.row - b.row);
}

/** The mean of judgements: what a hit that has none yet may be taken to have. 0 without any. Pure. */
export function typical(judgements: ReadonlyMap<number, number>): number {
  let sum = 0;
  for (const judgement of judgements.values()) sum += judgement;
  return judgements.size === 0 ? 0 : sum / judgements.size;
}

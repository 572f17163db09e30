/**
 * From evidence to score. The evidence for a chunk is, in each tier, a share of what would be perfect:
 *
 * - by words, the mean of two shares: of the BM25 score the query can reach, and of the query's words (by weight) that
 *   the chunk holds. The first alone would call a chunk with every word of the query once no more than middling.
 * - by words and vectors, its mix times the mean of the evidence by words for the best chunk and the best cosine: the
 *   mix orders the chunks of one answer, its factor says how good the best of them is.
 *
 * The score is the probability that the chunk is relevant, by a logistic curve fitted on the train queries of SciFact
 * (809), where half of them had their relevant documents taken away, since people also ask for what is not there. By
 * words the fit was −7.00 + 10.05 × evidence, by both −7.00 + 11.03 × evidence: one curve serves both, so a score
 * means the same in every tier. `node bench/retrieval.ts --fit` repeats the fit.
 */
const INTERCEPT = -7;
const SLOPE = 10.4;

/** Score in (0, 1) of a chunk with this evidence in [0, 1]; grows with it. */
export function scoreOf(evidence: number): number {
  return 1 / (1 + Math.exp(-(INTERCEPT + SLOPE * evidence)));
}

/** Evidence by words alone; `coverage` is the share of the query's weight that the chunk holds. */
export function lexicalEvidence(
  hit: { bm25: number; coverage: number } | undefined,
  ceiling: number,
): number {
  return hit === undefined || ceiling <= 0 ? 0 : (hit.bm25 / ceiling + hit.coverage) / 2;
}

/** Evidence by words and vectors; the best are those of the answer. */
export function fusedEvidence(mix: number, lexicalBest: number, cosineBest: number): number {
  return (mix * (lexicalBest + Math.max(0, cosineBest))) / 2;
}

/** A chunk in a ranking: `rank` is what orders it, larger first. */
export interface RankedEvidence {
  readonly rank: number;
  readonly evidence: number;
}

/** Step between neighbours whose evidence does not fall with their rank. */
const STEP = 1e-9;

/**
 * Scores for a ranking in falling order of `rank`: that of the evidence, but never more than the one before, so that
 * the scores order as the ranks do; equal only where the ranks are equal.
 */
export function fallingScores(ranking: readonly RankedEvidence[]): number[] {
  const scores: number[] = [];
  for (const [at, { rank, evidence }] of ranking.entries()) {
    const before = scores[at - 1] ?? 1;
    const most = ranking[at - 1]?.rank === rank ? before : before * (1 - STEP);
    scores.push(Math.min(scoreOf(evidence), most));
  }
  return scores;
}

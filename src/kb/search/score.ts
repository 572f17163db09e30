/**
 * From evidence to score. The evidence for a chunk is, in each tier, a share of what would be perfect:
 *
 * - by words, the mean of two shares: of the BM25 score the query can reach, and of the query's words (by weight) that
 *   the chunk holds. The first alone would call a chunk with every word of the query once no more than middling.
 * - by words and vectors, its mix times how good the best of the answer is: the mix orders the chunks of one answer. The
 *   best is as good as the mean of the evidence by words for the best chunk and the best cosine, or as that cosine alone
 *   says: who asks in other words than the text's is answered by meaning, and the words have no say. A chunk's own
 *   cosine, too, counts for itself, whatever the mix says.
 *
 * The probability that the chunk is relevant follows a logistic curve fitted on the train queries of SciFact
 * (809), where half of them had their relevant documents taken away, since people also ask for what is not there. One
 * curve serves every tier, so that a score means the same: what was fitted for words and vectors (−9.31 + 13.61 × evidence;
 * reranked by sentences −9.14 + 13.08) is laid onto that for words.
 *
 * The score is that probability with its odds times a constant, so that 0.5 stands where keeping results and dropping them are worth
 * the same: with a least probability of 0.16 to 0.2, precision and recall are best together (F1) in each tier, on these queries and on
 * 472 questions about long texts. With a least probability of 0.5, six of seven relevant results would be dropped.
 * `node bench/retrieval.ts --fit` compares scores with the truth. The cosines are those of the local model: another one's
 * may lie higher or lower, and so do its scores.
 */
const INTERCEPT = -7;
const SLOPE = 10.4;
/** Probability that has the score 0.5. */
const PROBABILITY_EVEN = 0.18;
const SHIFT = Math.log((1 - PROBABILITY_EVEN) / PROBABILITY_EVEN);

/** Score in (0, 1) of a chunk with this evidence in [0, 1]; grows with it. */
export function scoreOf(evidence: number): number {
  return 1 / (1 + Math.exp(-(INTERCEPT + SLOPE * evidence + SHIFT)));
}

/** The probability of being relevant that a score stands for. */
export function probabilityOf(score: number): number {
  return (score * PROBABILITY_EVEN) / (score * PROBABILITY_EVEN + (1 - score) * (1 - PROBABILITY_EVEN));
}

/** Evidence by words alone; `coverage` is the share of the query's weight that the chunk holds. */
export function lexicalEvidence(
  hit: { bm25: number; coverage: number } | undefined,
  ceiling: number,
): number {
  return hit === undefined || ceiling <= 0 ? 0 : (hit.bm25 / ceiling + hit.coverage) / 2;
}

/** What a chunk found by words and vectors is judged by. */
export interface FusedWitness {
  /** [0, 1]. */
  readonly mix: number;
  /** The chunk's own; undefined for one without a vector. */
  readonly cosine: number | undefined;
  /** Evidence by words for the best of the answer. */
  readonly lexicalBest: number;
  readonly cosineBest: number;
}

/**
 * What a cosine says less than as much of evidence by both, fitted on the train queries searched by vectors alone; a
 * chunk's own, which the mix did not put first, a little less still.
 */
const COSINE_ALONE = 0.14;
const COSINE_OWN = 0.2;
/** Lays the curve of words and vectors onto the one above. */
const FUSED_INTERCEPT = -0.22;
const FUSED_SLOPE = 1.31;

/** Evidence by words and vectors, on the scale of that by words. */
export function fusedEvidence({ mix, cosine, lexicalBest, cosineBest }: FusedWitness): number {
  const best = Math.max((lexicalBest + Math.max(0, cosineBest)) / 2, cosineBest - COSINE_ALONE);
  const evidence = Math.max(mix * best, (cosine ?? 0) - COSINE_OWN);
  return Math.min(1, Math.max(0, FUSED_INTERCEPT + FUSED_SLOPE * evidence));
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

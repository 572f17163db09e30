import type { WordMatch } from "../lexical/word-match.ts";

/**
 * From evidence to score. The evidence for a chunk depends on the chunk, the query and the embedding model alone, never on
 * what else its owner has: a score stays as a collection grows, and is the same in every tier that knows as much.
 *
 * - By words: the share of the query's words, by weight (lexical/common-words.ts), that the chunk, its title and its headings
 *   hold, and how much the chunk is about them. The second is a sum: that a query's only word is a common one says little.
 * - By meaning: the cosine of the chunk's vector. The constants are those of the local model.
 *
 * `node bench/scores.ts` fits the constants, and measures them on the kind of text that they were not fitted to.
 */
export interface ChunkEvidence {
  readonly match: WordMatch;
  /** Weight of all of the query's words. */
  readonly total: number;
  /** Undefined for a chunk without a vector: it is scored by its words. */
  readonly cosine: number | undefined;
}

/** What is fitted. */
export interface Fitted {
  /** Logit of being relevant by words, of `wordFeatures`. */
  readonly words: { readonly intercept: number; readonly coverage: number; readonly strength: number };
  /** The same by words and meaning: of the logit by words and of the cosine. */
  readonly both: { readonly intercept: number; readonly words: number; readonly cosine: number };
  /**
   * Logit that has the score 0.5: of the questions of each set, at most 2 % find a chunk about another subject by their words
   * that has as much. A probability of a third, as judgements are incomplete and one chunk of many answers a question.
   */
  readonly even: number;
}

/** As `node bench/scores.ts` prints it. */
export const FITTED: Fitted = {
  words: { intercept: -3.78, coverage: 1.39, strength: 2.35 },
  both: { intercept: -2.66, words: 0.5, cosine: 5.02 },
  even: -0.7,
};
/** A cosine up to this is noise: texts without anything in common have it. */
export const COSINE_NOISE = 0.2;
/** Most that a query of function words alone finds: by meaning, and nobody knows what it asks for. */
const WORDLESS_MAX = 0.3;
/** Queries that weigh more count as of this weight: of a long text a chunk holds much by chance. */
const WEIGHT_MAX = 6;

/**
 * Score in [0, 1) of a chunk; 0 where there is no evidence: none but function words in common, and a cosine of noise. Grows
 * with each part of the evidence.
 */
export function scoreOf(evidence: ChunkEvidence, fitted: Fitted = FITTED): number {
  const { match, total, cosine } = evidence;
  if (match.matched <= 0 && (cosine === undefined || cosine <= COSINE_NOISE)) return 0;
  const score = 1 / (1 + Math.exp(fitted.even - logitOf(evidence, fitted)));
  return total > 0 ? score : WORDLESS_MAX * score;
}

/** Logit of being relevant. */
export function logitOf({ match, total, cosine }: ChunkEvidence, { words, both }: Fitted): number {
  const [coverage, strength] = wordFeatures(match, total);
  const byWords = words.intercept + words.coverage * coverage + words.strength * strength;
  if (cosine === undefined) return byWords;
  return both.intercept + both.words * byWords + both.cosine * Math.max(COSINE_NOISE, cosine);
}

/** What the logit by words is linear in. */
export function wordFeatures(
  { matched, strength }: WordMatch,
  total: number,
): [coverage: number, strength: number] {
  if (total <= 0) return [0, 0];
  return [matched / total, Math.log1p(strength * Math.min(1, WEIGHT_MAX / total))];
}

/** A chunk in a ranking: `mix` is what orders it, larger first. */
export interface ScoredHit {
  readonly mix: number;
  /** Its own, by its evidence. */
  readonly score: number;
}

/** Step between neighbours that would have one score though their ranks differ. */
const STEP = 1e-9;

/**
 * Scores that fall as the ranking does, as near to the hits' own as can be. The ranking knows the collection, where a word that is
 * rare elsewhere may be common; the hits' own scores do not. Where they rise from one hit to the next, neighbours get
 * their mean (pooling adjacent violators). Hits are in falling order of `mix`; scores are equal only where the mixes are. Pure.
 *
 * Putting the hits in order by their own scores where these differ by much cost SciFact 0.003 to 0.02 nDCG@10.
 */
export function fallingScores(ranking: readonly ScoredHit[]): number[] {
  const pools: { sum: number; count: number }[] = [];
  for (const { score } of ranking) {
    const pool = { sum: score, count: 1 };
    let last = pools.at(-1);
    while (last !== undefined && last.sum * pool.count < pool.sum * last.count) {
      pool.sum += last.sum;
      pool.count += last.count;
      pools.pop();
      last = pools.at(-1);
    }
    pools.push(pool);
  }
  const means = pools.flatMap(({ sum, count }) => Array.from({ length: count }, () => sum / count));
  const scores: number[] = [];
  for (const [at, { mix }] of ranking.entries()) {
    const before = scores[at - 1] ?? 1;
    const most = at > 0 && ranking[at - 1]?.mix === mix ? before : before * (1 - STEP);
    scores.push(Math.min(means[at] ?? 0, most));
  }
  return scores;
}

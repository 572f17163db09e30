import type { WordMatch } from "../lexical/word-match.ts";

/**
 * Evidence that a chunk answers a query. It depends on the chunk, the query and the embedding model alone, never on the
 * rest of the collection. So a score does not change as a collection grows, and tiers with the same evidence give the same
 * score.
 *
 * - By words: the share of the query's words, by weight (lexical/common-words.ts), that the chunk, its title and its headings
 *   contain, and how strongly the chunk is about them. The strength is a sum: a match of a single common word means little.
 * - By meaning: the cosine of the chunk's vector. The constants fit the local model.
 *
 * `node bench/scores.ts` fits the constants and measures them on texts of a kind that the fit did not see.
 */
export interface ChunkEvidence {
  readonly match: WordMatch;
  /** Sum of the weights of the query's words. */
  readonly total: number;
  /** Undefined for a chunk without a vector, which is scored by its words. */
  readonly cosine: number | undefined;
}

/** Coefficients of the logistic model. */
export interface Fitted {
  /** Logit of relevance by words, from `wordFeatures`. */
  readonly words: { readonly intercept: number; readonly coverage: number; readonly strength: number };
  /** Logit of relevance by words and meaning, from the logit by words and the cosine. */
  readonly both: { readonly intercept: number; readonly words: number; readonly cosine: number };
  /**
   * Logit that maps to the score 0.5. In each set, at most 2 % of the questions reach it by words with a chunk about another
   * subject. It is a probability of a third, because judgements are incomplete and one chunk of many answers a question.
   */
  readonly even: number;
}

/** Output of `node bench/scores.ts`. */
export const FITTED: Fitted = {
  words: { intercept: -3.77, coverage: 1.42, strength: 2.33 },
  both: { intercept: -2.49, words: 0.53, cosine: 4.68 },
  even: -0.67,
};
/** Noise floor of the cosine: unrelated texts reach it. */
export const COSINE_NOISE = 0.2;
/** Largest score for a query of function words alone: it matches by meaning only, and its intent is unclear. */
const WORDLESS_MAX = 0.3;
/** Cap on the weight of a query: a chunk contains many words of a long query by chance. */
const WEIGHT_MAX = 6;

/** Weight of a reranking model in a score. The model reads query and text together and outperforms the other evidence. */
const RERANKER_SHARE = 0.75;

/**
 * Returns the score of a chunk in [0, 1). The score is 0 without evidence, that is, if only function words match and the
 * cosine is noise. Grows with each part of the evidence.
 */
export function scoreOf(evidence: ChunkEvidence, fitted: Fitted = FITTED): number {
  const { match, total, cosine } = evidence;
  if (match.matched <= 0 && (cosine === undefined || cosine <= COSINE_NOISE)) return 0;
  const score = 1 / (1 + Math.exp(fitted.even - logitOf(evidence, fitted)));
  return total > 0 ? score : WORDLESS_MAX * score;
}

/**
 * Returns the score of a chunk that a reranking model judged. The chunk's own score keeps a quarter of the weight, so that a
 * weak model cannot invert a ranking. `judgement` is in [0, 1].
 */
export function judgedScore(own: number, judgement: number, total: number): number {
  return (1 - RERANKER_SHARE) * own + RERANKER_SHARE * (total > 0 ? judgement : WORDLESS_MAX * judgement);
}

/** Returns the logit of relevance. */
export function logitOf({ match, total, cosine }: ChunkEvidence, { words, both }: Fitted): number {
  const [coverage, strength] = wordFeatures(match, total);
  const byWords = words.intercept + words.coverage * coverage + words.strength * strength;
  if (cosine === undefined) return byWords;
  return both.intercept + both.words * byWords + both.cosine * Math.max(COSINE_NOISE, cosine);
}

/** Returns the features of the linear model by words. */
export function wordFeatures(
  { matched, strength }: WordMatch,
  total: number,
): [coverage: number, strength: number] {
  if (total <= 0) return [0, 0];
  return [matched / total, Math.log1p(strength * Math.min(1, WEIGHT_MAX / total))];
}

/** A chunk in a ranking by descending `mix`. */
export interface ScoredHit {
  readonly mix: number;
  /** Score from the chunk's own evidence. */
  readonly score: number;
}

/** Difference between neighbours of different rank that would otherwise share a score. */
const STEP = 1e-9;
/** Largest shift of a score by the ranking, in a large collection. */
const SHIFT_MAX = 0.095;
/** Up to FEW_CHUNKS the ranking shifts no score; from MANY_CHUNKS on by up to `SHIFT_MAX`; in between logarithmically. */
const FEW_CHUNKS = 30;
const MANY_CHUNKS = 3000;

/**
 * Returns how far the ranking may shift a score in a scope of `chunks` chunks. The bound grows with the scope, because a few
 * chunks do not show which words are common. Between three short documents and ten thousand a score changes by less than 0.1.
 */
export function shiftMaxOf(chunks: number): number {
  const share = Math.log(Math.max(chunks, 1) / FEW_CHUNKS) / Math.log(MANY_CHUNKS / FEW_CHUNKS);
  return SHIFT_MAX * Math.min(1, Math.max(0, share));
}

/**
 * Returns the scores to report, in the order of the hits. The ranking reflects the collection, in which a generally rare word
 * may be common; a chunk's own score does not, and must change little with the collection. So each score moves by at most
 * `shiftMax` towards the nearest sequence that falls with the ranking. Expects hits by descending `mix`. Scores are equal only
 * where the mixes are. Pure.
 */
export function reportedScores(ranking: readonly ScoredHit[], shiftMax: number): number[] {
  // The midpoint of the minimum so far and the maximum to come: the falling sequence with the smallest maximum change.
  let max = 0;
  const maxFrom = ranking
    .toReversed()
    .map(({ score }) => (max = Math.max(max, score)))
    .toReversed();
  let min = Infinity;
  let rank = 0;
  return ranking.map(({ mix, score }, at) => {
    if (ranking[at - 1]?.mix !== mix) rank = at;
    min = Math.min(min, score);
    const falling = (min + (maxFrom[at] ?? 0)) / 2;
    const shifted = Math.min(score + shiftMax, Math.max(score - shiftMax, falling));
    return shifted * (1 - STEP * rank);
  });
}

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
  words: { intercept: -3.77, coverage: 1.42, strength: 2.33 },
  both: { intercept: -2.49, words: 0.53, cosine: 4.68 },
  even: -0.67,
};
/** A cosine up to this is noise: texts without anything in common have it. */
export const COSINE_NOISE = 0.2;
/** Most that a query of function words alone finds: by meaning, and nobody knows what it asks for. */
const WORDLESS_MAX = 0.3;
/** Queries that weigh more count as of this weight: of a long text a chunk holds much by chance. */
const WEIGHT_MAX = 6;

/** Share of a reranking model in a score: it reads query and text together, which outdoes what found them. */
const RERANKER_SHARE = 0.75;

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

/**
 * Score of a chunk that a reranking model has read: a quarter is that of its own evidence, so that a weak model cannot turn an
 * answer upside down. `judgement` is in [0, 1].
 */
export function judgedScore(own: number, judgement: number, total: number): number {
  return (1 - RERANKER_SHARE) * own + RERANKER_SHARE * (total > 0 ? judgement : WORDLESS_MAX * judgement);
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
/** How far the ranking of a large collection may move a score. */
const MOVED_MAX = 0.095;
/** Chunks up to which the ranking moves no score, and from which it moves one by `MOVED_MAX`: in between by the logarithm. */
const FEW_CHUNKS = 30;
const MANY_CHUNKS = 3000;

/**
 * How far a ranking may move a score: the further, the larger the part of the collection that it comes from, as of a few chunks nobody
 * can say which words are common. Between three documents and ten thousand a score changes by less than a tenth.
 */
export function movedMaxOf(chunks: number): number {
  const share = Math.log(Math.max(chunks, 1) / FEW_CHUNKS) / Math.log(MANY_CHUNKS / FEW_CHUNKS);
  return MOVED_MAX * Math.min(1, Math.max(0, share));
}

/**
 * The scores that an answer shows, in the order of the hits; by them it is sorted. The ranking knows the collection, where a word that is
 * rare elsewhere may be common; the hits' own scores do not, and must not change much with it. So each own score moves towards the
 * nearest one that falls as the ranking does, but by at most `movedMax`. Hits are in falling order of `mix`; scores are equal
 * only where the mixes are. Pure.
 */
export function shownScores(ranking: readonly ScoredHit[], movedMax: number): number[] {
  // Halfway between the least so far and the most to come: no other falling sequence has a smaller greatest change.
  const most: number[] = [];
  for (let at = ranking.length - 1; at >= 0; at -= 1)
    most[at] = Math.max(ranking[at]?.score ?? 0, most[at + 1] ?? 0);
  let least = Infinity;
  let rank = 0;
  return ranking.map(({ mix, score }, at) => {
    if (ranking[at - 1]?.mix !== mix) rank = at;
    least = Math.min(least, score);
    const falling = (least + (most[at] ?? 0)) / 2;
    const shown = Math.min(score + movedMax, Math.max(score - movedMax, falling));
    return shown * (1 - STEP * rank);
  });
}

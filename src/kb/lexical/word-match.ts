import { analyze } from "./analyzer.ts";
import { K1, queryFactor, saturation } from "./bm25.ts";
import { termWeight } from "./common-words.ts";

/** Distinct words of a query that are looked up, the first ones; a longer query is a text, and says enough with these. */
export const LOOKED_UP_MAX = 256;
/** Length, in words, that a chunk is compared with: 1000 characters of English prose. Not the collection's own mean. */
const WORDS_MEAN = 150;

/** The words of a query by what they say, in every collection the same. */
export interface QueryWords {
  /** Terms in order of first appearance, at most `LOOKED_UP_MAX`. */
  readonly terms: readonly string[];
  /** Of each term: the factor of its occurrences in the query. */
  readonly factors: readonly number[];
  /** Of each term: its weight (common-words.ts) times the factor of its occurrences; 0 for a function word. */
  readonly weights: readonly number[];
  readonly total: number;
}

/** What a chunk holds of a query's words. It depends on both texts alone, never on what else there is. */
export interface WordMatch {
  /** Sum of the weights that the chunk holds. */
  readonly matched: number;
  /** The same, each times how much the chunk is about the word, (0, 1). */
  readonly strength: number;
}

/** Weighs the words of a query. Pure. */
export function queryWords(query: string): QueryWords {
  const { terms: all, counts } = analyze(query);
  const terms = all.slice(0, LOOKED_UP_MAX);
  const factors = terms.map((_, at) => queryFactor(counts[at] ?? 0));
  const weights = terms.map((term, at) => (factors[at] ?? 0) * termWeight(term));
  return { terms, factors, weights, total: weights.reduce((sum, weight) => sum + weight, 0) };
}

/** Weighs what a chunk of `words` words holds; `counts` are the occurrences of each of the terms in it. Pure. */
export function matchOf(weights: readonly number[], counts: readonly number[], words: number): WordMatch {
  let matched = 0;
  let strength = 0;
  for (const [at, weight] of weights.entries()) {
    const times = counts[at] ?? 0;
    if (times === 0) continue;
    matched += weight;
    strength += (weight * saturation(times, words, WORDS_MEAN)) / (K1 + 1);
  }
  return { matched, strength };
}

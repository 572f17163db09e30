import { termOccurrences, type QueryWords } from "./word-match.ts";

/** Words of a window: a clause. On five judged sets 10 was better than 20 and 40. */
const WINDOW_WORDS = 10;

/**
 * Returns the largest share of a query, by the weight of its words, that stands within any ten words of a text, [0, 1]. A text
 * that is about a question seldom spreads the question's words over several sentences. Depends on both texts alone. Pure.
 */
export function closeness(query: QueryWords, text: string): number {
  const { weights, total } = query;
  if (total <= 0) return 0;
  const { occurrences } = termOccurrences(query, text);
  const counts = weights.map(() => 0);
  let first = 0;
  let sum = 0;
  let best = 0;
  for (const { term, at } of occurrences) {
    if (counts[term] === 0) sum += weights[term] ?? 0;
    counts[term] = (counts[term] ?? 0) + 1;
    for (
      let left = occurrences[first];
      left !== undefined && at - left.at >= WINDOW_WORDS;
      left = occurrences[first]
    ) {
      counts[left.term] = (counts[left.term] ?? 0) - 1;
      if (counts[left.term] === 0) sum -= weights[left.term] ?? 0;
      first += 1;
    }
    best = Math.max(best, sum);
  }
  // Sums of weights may exceed their total in the last digits.
  return Math.min(1, best / total);
}

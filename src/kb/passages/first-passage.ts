import { matchText, queryWords } from "../lexical/word-match.ts";
import { byBest, type Passage } from "./passages.ts";
import { textOf } from "./pieces.ts";

/** Passages that may become the first one: more gained nothing on the four sets of docs/BENCHMARKS.md. */
const CANDIDATES = 3;
/**
 * Weight of a passage's words next to the score of its best hit. A logistic model of which passage answers, fitted to three of
 * the four sets of docs/BENCHMARKS.md, gives 0.6 to 1; the one without the documentation sample 0.76.
 */
const WORDS_WEIGHT = 0.75;

/**
 * Returns the passage that answers a query best: by the score of its best hit, and by how strongly all of its text is about the
 * words of the query. A hit may have them by chance; a page around it that is about them seldom does. Undefined: there is no
 * passage. Pure.
 */
export function firstPassage(passages: readonly Passage[], query: string): Passage | undefined {
  const words = queryWords(query);
  const candidates = byBest(passages).slice(0, CANDIDATES);
  if (words.total === 0 || candidates.length < 2) return candidates[0];
  const values = candidates.map((passage) => {
    const [best] = passage.hits;
    return best.score + (WORDS_WEIGHT * matchText(words, textAround(passage)).strength) / words.total;
  });
  return candidates[values.indexOf(Math.max(...values))];
}

/** Returns the text that the search returns of the best hit. */
function textAround({ hits: [best], pieces, chunk }: Passage): string {
  return chunk === undefined ? textOf(pieces, best.wanted) : chunk.text;
}

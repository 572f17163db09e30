import { foldedTerms } from "../../kb/lexical/fold.ts";
import { queryWords } from "../../kb/lexical/word-match.ts";

/** The words of a query with their weights, to find them in a text. */
export interface QueryMatches {
  /** Sum of the weights of the distinct query words in a text. */
  weightOf(text: string): number;
  /** Splits a text into runs: words of the query, and what is between them. */
  runsOf(text: string): readonly { readonly text: string; readonly isMatch: boolean }[];
}

/** A character of a script without spaces, which is a word by itself; else a run of letters and digits. */
const WORD =
  /([\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]\p{M}*|(?:(?![\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}])[\p{L}\p{N}\p{M}\p{Co}])+)/u;

/** Reads a query as the service does. Function words count only if there are no others. */
export function queryMatches(query: string): QueryMatches {
  const { terms, weights, total } = queryWords(query);
  const known = new Map(
    terms.flatMap((term, at) => {
      const weight = total === 0 ? 1 : (weights[at] ?? 0);
      return weight === 0 ? [] : [[term, weight] as const];
    }),
  );
  return {
    weightOf: (text) =>
      new Set(foldedTerms(text)).values().reduce((sum, term) => sum + (known.get(term) ?? 0), 0),
    runsOf: (text) =>
      text
        .split(WORD)
        .map((run) => ({ text: run, isMatch: foldedTerms(run).some((term) => known.has(term)) }))
        .filter((run) => run.text !== ""),
  };
}

import { analyze } from "../../../../src/kb/lexical/analyzer.ts";
import { idf, K1, saturation } from "../../../../src/kb/lexical/bm25.ts";
import { matchOf, queryWords } from "../../../../src/kb/lexical/word-match.ts";

/** The texts of the chunks of a scope, by sequence; undefined: removed. */
export type Texts = readonly (string | undefined)[];

/** Scores chunks by the definition of BM25, best first. */
export function expectedHits(texts: Texts, query: string, first = 0, last = texts.length) {
  const words = queryWords(query);
  const chunks = texts.flatMap((of, sequence) =>
    of === undefined ? [] : [{ sequence, terms: analyzed(of) }],
  );
  const total = chunks.reduce((sum, { terms }) => sum + terms.words, 0);
  const countIn = (terms: ReturnType<typeof analyze>, term: string): number =>
    terms.counts[terms.terms.indexOf(term)] ?? 0;
  const weights = words.terms.map(
    (term, at) =>
      (words.factors[at] ?? 0) *
      idf(chunks.filter(({ terms }) => countIn(terms, term) > 0).length, chunks.length),
  );
  const hits = chunks.flatMap(({ sequence, terms }) => {
    const counts = words.terms.map((term) => countIn(terms, term));
    const bm25 = counts.reduce(
      (sum, times, at) =>
        times === 0 ? sum : sum + (weights[at] ?? 0) * saturation(times, terms.words, total / chunks.length),
      0,
    );
    const isWanted = bm25 > 0 && sequence >= first && sequence <= last;
    return isWanted ? [{ sequence, bm25, match: matchOf(words.weights, counts, terms.words) }] : [];
  });
  return {
    hits: hits.sort((a, b) => b.bm25 - a.bm25 || a.sequence - b.sequence),
    ceiling: hits.length === 0 ? 0 : weights.reduce((sum, weight) => sum + weight, 0) * (K1 + 1),
  };
}

/** Number of words of all chunks. */
export function wordsOf(texts: Texts): number {
  return texts.reduce((sum, of) => sum + (of === undefined ? 0 : analyzed(of).words), 0);
}

const analysed = new Map<string, ReturnType<typeof analyze>>();
function analyzed(text: string): ReturnType<typeof analyze> {
  const known = analysed.get(text) ?? analyze(text);
  analysed.set(text, known);
  return known;
}

import type { FoundResult } from "../../wire/answers.ts";
import type { Explanation } from "../../wire/search.ts";
import { foldedTerms } from "../lexical/fold.ts";
import { queryWords } from "../lexical/word-match.ts";
import type { FoundChunk, Index, Scope } from "../store/search-index.ts";
import type { ScoreBasis, SearchOutcome } from "./search.ts";

/** Returns the results of a search with what each was ranked by. A result whose chunk was replaced since has no explanation. */
export async function explained(
  index: Pick<Index, "matchedTerms">,
  { scope, query }: { readonly scope: Scope; readonly query: string },
  { results, chunks, bases }: Pick<SearchOutcome, "results" | "chunks" | "bases">,
): Promise<readonly FoundResult[]> {
  const found = await index.matchedTerms({ scope, query, refs: chunks.map(({ ref }) => ref) });
  const termsOf = new Map(found.map(({ ref, terms }) => [ref, terms]));
  return results.map((result, at) => {
    const { ref } = chunks[at] as FoundChunk; // one of each result
    const terms = termsOf.get(ref);
    const basis = bases.get(ref);
    if (terms === undefined || basis === undefined) return result;
    return { ...result, explain: explanationOf(query, terms, basis) };
  });
}

/** States what a chunk with these terms of the query was ranked by. Pure. */
function explanationOf(
  query: string,
  terms: readonly string[],
  { match, bm25Share, cosine, rerank }: ScoreBasis,
): Explanation {
  const { terms: all, weights, total } = queryWords(query);
  const has = new Set(terms);
  const words = writtenWords(query);
  const wordOf = (term: string): string => words.get(term) ?? term;
  // Function words count for nothing, unless the query has no other words.
  const counting = all.filter((_, at) => total === 0 || (weights[at] ?? 0) > 0);
  return {
    matchedWords: [...new Set(counting.filter((term) => has.has(term)).map(wordOf))],
    missingWords: [...new Set(counting.filter((term) => !has.has(term)).map(wordOf))],
    wordShare: total > 0 ? Math.min(1, match.matched / total) : 0,
    bm25Share: Math.min(1, bm25Share),
    cosine: cosine === undefined ? null : Math.min(1, Math.max(-1, cosine)),
    rerank,
  };
}

/** Returns the terms of a query with the word that each comes from, as the query first writes it. */
function writtenWords(query: string): ReadonlyMap<string, string> {
  const words = new Map<string, string>();
  for (const [word] of query.matchAll(/[\p{L}\p{N}\p{M}\p{Co}]+/gu)) {
    const terms = foldedTerms(word);
    // A run of a script without spaces has several terms, each of which is a part of it.
    for (const term of terms) if (!words.has(term)) words.set(term, terms.length === 1 ? word : term);
  }
  return words;
}

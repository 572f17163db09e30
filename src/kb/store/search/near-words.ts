import { languagesIn, occursIn, type WordSnapshot } from "../../index/words/query-terms.ts";
import { termWeight } from "../../lexical/common-words.ts";
import { nearTerms } from "../../lexical/near-terms.ts";
import { inLanguages, type QueryWords } from "../../lexical/word-match.ts";

/** Words of a query that are replaced at most. A query of more unknown words is a text, or in another language. */
const REPLACED_MAX = 4;
/** Weight of a near word beside that of the word itself. */
const NEAR_SHARE = 0.7;
/** Near terms that a search has looked up, by term; undefined: the scope has none. */
export type NearFound = Map<string, string | undefined>;

/**
 * Returns the terms of words that no chunk of the scope contains in any language, of as many words as are replaced.
 */
export function unknownTerms(snapshot: WordSnapshot, { terms, otherOf }: QueryWords): string[] {
  const placeOf = (at: number): number => otherOf?.[at] ?? at;
  const known = new Set(
    otherOf?.flatMap((place, at) =>
      place !== undefined && occursIn(snapshot, terms[at] ?? "") ? [place] : [],
    ),
  );
  const unknown = terms
    .map((term, at) => ({ term, at }))
    .filter(({ term, at }) => placeOf(at) === at && termWeight(term) > 0 && !known.has(at))
    .filter(({ term }) => !occursIn(snapshot, term))
    .slice(0, REPLACED_MAX);
  if (otherOf === undefined) return unknown.map(({ term }) => term);
  const places = new Set(unknown.map(({ at }) => at));
  return terms.filter((_, at) => places.has(placeOf(at)));
}

/** Adds to the words of a query its terms in the other languages of the scope. */
export function inLanguagesOf(snapshot: WordSnapshot, words: QueryWords, query: string): QueryWords {
  return inLanguages(words, query, languagesIn(snapshot));
}

/**
 * Replaces the words of a query that no chunk of the scope contains by words that differ by one typing error. Looks up the
 * neighbours of one word, some hundred, and returns undefined: call again with the same `found`.
 */
export function replaceUnknown(
  snapshot: WordSnapshot,
  words: QueryWords,
  found: NearFound,
): QueryWords | undefined {
  const used = new Set(words.terms);
  const replaced = new Map<string, string>();
  for (const term of unknownTerms(snapshot, words)) {
    if (!found.has(term)) {
      found.set(
        term,
        nearTerms(term).find((other) => occursIn(snapshot, other)),
      );
      return undefined;
    }
    const near = found.get(term);
    if (near === undefined || used.has(near)) continue;
    used.add(near);
    replaced.set(term, near);
  }
  return replaced.size === 0 ? words : withReplaced(words, replaced);
}

function withReplaced(words: QueryWords, replaced: ReadonlyMap<string, string>): QueryWords {
  const share = (term: string): number => (replaced.has(term) ? NEAR_SHARE : 1);
  return {
    ...words,
    terms: words.terms.map((term) => replaced.get(term) ?? term),
    factors: words.terms.map((term, at) => (words.factors[at] ?? 0) * share(term)),
    weights: words.terms.map((term, at) => {
      const weight = words.weights[at] ?? 0;
      const near = replaced.get(term);
      return near === undefined
        ? weight
        : NEAR_SHARE * Math.min(weight, (words.factors[at] ?? 0) * termWeight(near));
    }),
  };
}

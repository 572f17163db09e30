import { holdingOf, languagesIn, occursIn, type WordSnapshot } from "../../index/words/query-terms.ts";
import { termWeight } from "../../lexical/common-words.ts";
import { partTerms, splitsOf, type Split } from "../../lexical/compounds.ts";
import { readTerms, readWords } from "../../lexical/fold.ts";
import { nearTerms } from "../../lexical/near-terms.ts";
import { inLanguages, type QueryWords } from "../../lexical/word-match.ts";

/** Words of a query that are replaced at most. A query of more unknown words is a text, or in another language. */
const REPLACED_MAX = 4;
/** Weight of a near word beside that of the word itself. */
const NEAR_SHARE = 0.7;
/** Weight of each part of a compound beside that of the compound. */
const PART_SHARE = 0.5;
/** What a search has looked up of words that no chunk contains, so that it looks up nothing twice. */
export interface NearFound {
  /** Near terms by term; undefined: the scope has none. */
  readonly near: Map<string, string | undefined>;
  /** The words of the query with the parts of compounds. */
  withParts?: QueryWords;
}

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

/** A word of a query that no chunk of the scope contains, and how a language of the scope may read it as two. */
interface Compound {
  /** Index of its term in English. */
  readonly place: number;
  readonly spellings: number;
  readonly splits: readonly Split[];
}

/** Returns the possible compounds of a query whose words are in the languages of the scope. */
function unknownCompounds(snapshot: WordSnapshot, words: QueryWords, query: string): Compound[] {
  const { otherOf } = words;
  if (otherOf === undefined) return [];
  const unknown = new Set(unknownTerms(snapshot, words));
  if (unknown.size === 0) return [];
  const languages = languagesIn(snapshot);
  return [...new Set(readWords(query))].flatMap((word): Compound[] => {
    const [english] = readTerms(word);
    if (english === undefined || !unknown.has(english.term)) return [];
    const splits = languages.flatMap((language) => splitsOf(word, language));
    return [{ place: words.terms.indexOf(english.term), spellings: english.spellings, splits }];
  });
}

/** Returns the terms of the parts of possible compounds, some hundred a word. */
export function compoundTerms(snapshot: WordSnapshot, words: QueryWords, query: string): string[] {
  const compounds = unknownCompounds(snapshot, words, query);
  return compounds.flatMap(({ splits }) =>
    splits.flatMap(({ language, head, tail }) => [head, tail].flatMap((part) => partTerms(part, language))),
  );
}

/**
 * Adds the parts of compounds that no chunk of the scope contains, if the scope has both parts as words: of several splits, the one
 * whose parts are the most frequent (Koehn and Knight, Empirical Methods for Compound Splitting, 2003).
 */
export function withCompounds(snapshot: WordSnapshot, words: QueryWords, query: string): QueryWords {
  const compounds = unknownCompounds(snapshot, words, query);
  if (compounds.length === 0) return words;
  const added = { terms: [...words.terms], factors: [...words.factors], weights: [...words.weights] };
  const otherOf = [...(words.otherOf ?? [])];
  for (const { place, spellings, splits } of compounds) {
    const share = PART_SHARE * spellings;
    for (const term of bestParts(snapshot, splits)) {
      if (added.terms.includes(term)) continue;
      added.terms.push(term);
      added.factors.push(share * (words.factors[place] ?? 0));
      added.weights.push(share * (words.weights[place] ?? 0));
      otherOf.push(place);
    }
  }
  return { ...added, total: words.total, otherOf };
}

/** Returns the terms of the split whose parts the scope has most often; none if it has both parts of no split. */
function bestParts(snapshot: WordSnapshot, splits: readonly Split[]): readonly string[] {
  let best: { readonly terms: readonly string[]; readonly value: number } = { terms: [], value: 0 };
  for (const { language, head, tail } of splits) {
    const first = mostHeld(snapshot, partTerms(head, language));
    // Few heads are words: the other tails are not read.
    if (first.holding === 0) continue;
    const second = mostHeld(snapshot, partTerms(tail, language));
    const value = first.holding * second.holding;
    if (value > best.value) best = { terms: [first.term, second.term], value };
  }
  return best.terms;
}

/** Returns the term of a part that most chunks have. */
function mostHeld(snapshot: WordSnapshot, terms: readonly string[]) {
  return terms
    .map((term) => ({ term, holding: holdingOf(snapshot, term) }))
    .reduce((a, b) => (b.holding > a.holding ? b : a), { term: "", holding: 0 });
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
    if (!found.near.has(term)) {
      found.near.set(
        term,
        nearTerms(term).find((other) => occursIn(snapshot, other)),
      );
      return undefined;
    }
    const near = found.near.get(term);
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

import { K1, queryFactor, saturation } from "./bm25.ts";
import { termWeight } from "./common-words.ts";
import { readTerms, readWords } from "./fold.ts";
import { isFrequentIn, type Language } from "./languages.ts";

/** Number of distinct query terms that a search uses, the first ones. A longer query is a text; these terms suffice. */
const QUERY_TERMS_MAX = 256;
/** Most terms with those of other languages. */
const ALL_TERMS_MAX = 4 * QUERY_TERMS_MAX;
/** Mean chunk length in words for normalisation: 1000 characters of English prose. Independent of the collection. */
const WORDS_MEAN = 150;

/** The weighted terms of a query. The same in every collection. */
export interface QueryWords {
  /** Terms in order of first appearance, at most `QUERY_TERMS_MAX`. */
  readonly terms: readonly string[];
  /** Factor of each term's occurrences in the query. */
  readonly factors: readonly number[];
  /** Weight of each term (common-words.ts) times its factor; 0 for a function word. */
  readonly weights: readonly number[];
  /** Sum of the weights of the terms that are not `otherOf` one. */
  readonly total: number;
  /**
   * For each term that is another language's stem of a word, the index of the term that the word has in English; undefined for the
   * terms of English. A chunk is indexed in one language, so it has at most one of them.
   */
  readonly otherOf?: readonly (number | undefined)[];
}

/** Match of a chunk with the words of a query. Depends on both texts alone, never on the rest of the collection. */
export interface WordMatch {
  /** Sum of the weights of the terms that the chunk contains. */
  readonly matched: number;
  /** The same sum, each weight times the term's saturation in the chunk, scaled to (0, 1). */
  readonly strength: number;
}

/** Weighs the terms of a query. The spellings of one word share its weight. Pure. */
export function queryWords(query: string): QueryWords {
  const times = new Map<string, number>();
  const spelled = new Map<string, number>();
  for (const { term, spellings } of readTerms(query)) {
    times.set(term, (times.get(term) ?? 0) + 1);
    spelled.set(term, Math.min(spellings, spelled.get(term) ?? spellings));
  }
  const terms = [...times.keys()].slice(0, QUERY_TERMS_MAX);
  const factors = terms.map((term) => queryFactor(times.get(term) ?? 0) / (spelled.get(term) ?? 1));
  const weights = terms.map((term, at) => (factors[at] ?? 0) * termWeight(term));
  return { terms, factors, weights, total: weights.reduce((sum, weight) => sum + weight, 0) };
}

/**
 * Adds the terms by which the words of a query are found in texts of other languages. A word that is frequent in a language is not
 * sought in its texts, unless there are no others: in a scope of several languages its rarity would say nothing. Pure.
 */
export function inLanguages(words: QueryWords, query: string, languages: readonly Language[]): QueryWords {
  if (languages.length === 0) return words;
  const { terms, factors, weights, total } = words;
  const added = { terms: [...terms], factors: [...factors], weights: [...weights] };
  const otherOf: (number | undefined)[] = terms.map(() => undefined);
  const placeOf = new Map(terms.map((term, at) => [term, at]));
  const written = [...new Set(readWords(query))].slice(0, QUERY_TERMS_MAX);
  for (const language of languages) {
    const isFrequent = (word: string): boolean =>
      isFrequentIn(word.toLowerCase(), language) ||
      readTerms(word).every(({ term }) => termWeight(term) === 0);
    const sought = written.every(isFrequent) ? written : written.filter((word) => !isFrequent(word));
    for (const word of sought) {
      const [english] = readTerms(word);
      const place = english && placeOf.get(english.term);
      if (place === undefined || added.terms.length >= ALL_TERMS_MAX) continue;
      // Without the share of other spellings.
      const full = (factors[place] ?? 0) * (english?.spellings ?? 1);
      for (const { term, spellings } of readTerms(word, language)) {
        if (placeOf.has(term)) continue;
        placeOf.set(term, added.terms.length);
        added.terms.push(term);
        added.factors.push(full / spellings);
        added.weights.push((full / spellings) * termWeight(english?.term ?? term));
        otherOf.push(place);
      }
    }
  }
  return { ...added, total, otherOf };
}

/** Matches a chunk of `words` words; `counts` holds the occurrences of each term in the chunk. Pure. */
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

/** A word that is one term, which begins with its first letters: `y` alone may change there (`eyed`, `ei`). */
const PLAIN = /^[A-Za-z][a-xz][a-z]*$/;
/** Longest word whose stem may be a single letter (`ies`), with room to spare. */
const ONE_LETTER_CHARS = 5;

/** Matches any text as `matchOf` matches a chunk. Pure. */
export function matchText(query: QueryWords, text: string): WordMatch {
  const { occurrences, words } = termOccurrences(query, text);
  const counts = query.terms.map(() => 0);
  for (const { term } of occurrences) counts[term] = (counts[term] ?? 0) + 1;
  return matchOf(query.weights, counts, words);
}

/** An occurrence of a term of a query in a text. */
export interface TermOccurrence {
  /** Index of the term in the query. */
  readonly term: number;
  /** Number of words before it. */
  readonly at: number;
}

/**
 * Finds the terms of a query in any text, except those that weigh nothing. Returns the occurrences in order, and the number of
 * words of the text. Stems only words that may be words of the query. Pure.
 */
export function termOccurrences(
  { terms, weights }: QueryWords,
  text: string,
): { readonly occurrences: readonly TermOccurrence[]; readonly words: number } {
  // A function word adds nothing to a match.
  const numbers = new Map(
    [...terms.entries()].flatMap(([at, term]) => ((weights[at] ?? 0) > 0 ? [[term, at] as const] : [])),
  );
  const begins = new Set([...numbers.keys()].map(beginOf));
  const occurrences: TermOccurrence[] = [];
  let words = 0;
  const seen = new Map<string, { readonly words: number; readonly terms: readonly number[] }>();
  for (const word of readWords(text)) {
    // Nearly all words end here. A capital differs from its small letter by one bit.
    const first = word.charCodeAt(0) | 0x20;
    const mayMatch =
      begins.has(pairOf(first, word.charCodeAt(1))) ||
      (word.length <= ONE_LETTER_CHARS && begins.has(pairOf(first, 0)));
    if (!mayMatch && PLAIN.test(word)) {
      words += 1;
      continue;
    }
    let read = seen.get(word);
    if (read === undefined) {
      read = readWord(word, numbers);
      seen.set(word, read);
    }
    for (const term of read.terms) occurrences.push({ term, at: words });
    words += read.words;
  }
  return { occurrences, words };
}

/** The first two letters of a term as a number; a term of one letter has 0 for the second. */
function beginOf(term: string): number {
  return pairOf(term.charCodeAt(0), term.length > 1 ? term.charCodeAt(1) : 0);
}

function pairOf(first: number, second: number): number {
  return (first << 16) | second;
}

/** Returns the words that a word counts for, and the numbers of its terms. */
function readWord(word: string, numbers: ReadonlyMap<string, number>) {
  const read = readTerms(word);
  return {
    words: read.filter(({ isExtra }) => !isExtra).length,
    terms: read.flatMap(({ term }) => numbers.get(term) ?? []),
  };
}

import { idf } from "../../lexical/bm25.ts";
import { type Language, LANGUAGES } from "../../lexical/languages.ts";
import type { QueryWords } from "../../lexical/word-match.ts";
import type { PostingList } from "./postings.ts";
import type { LivePart } from "./removed.ts";
import { hashOf } from "./term-hash.ts";

/** Maximum words of a query that chunks are scored by: the weightiest of those that the scope has. */
const SCORED_MAX = 64;

/** One snapshot of a scope's index of words. */
export interface WordSnapshot {
  /** By ascending sequences. */
  readonly parts: readonly LivePart[];
  /** Chunks of the scope, and their words. */
  readonly chunks: number;
  readonly words: number;
}

/** A word of a query with its posting lists. */
export interface QueryTerm {
  /** Index among the words of the query. */
  readonly at: number;
  /** Factor from its occurrences in the query. */
  readonly factor: number;
  /** `factor` × idf. */
  readonly weight: number;
  /** Chunks that contain it. */
  readonly holding: number;
  /** Its list in each part. */
  readonly lists: readonly (PostingList | undefined)[];
}

/** Looks up the words of a query, by descending weight. */
export function queryTerms({ parts, chunks }: WordSnapshot, words: QueryWords): QueryTerm[] {
  return words.terms
    .map((term, at) => {
      const hash = hashOf(term);
      const lists = parts.map(({ part }) => part.list(hash));
      const holding = lists.reduce(
        (sum, list, of) =>
          sum + (list === undefined ? 0 : list.count - (parts[of]?.removed.postings(list) ?? 0)),
        0,
      );
      const factor = words.factors[at] ?? 0;
      return { at, factor, weight: factor * idf(holding, chunks), holding, lists };
    })
    .sort((a, b) => b.weight - a.weight || a.at - b.at);
}

/** Returns those terms that chunks are scored by, by descending weight, given all terms in that order. */
export function scoredTerms(all: readonly QueryTerm[]): QueryTerm[] {
  // Words that no chunk has weigh most. They must not take the place of others.
  return all.filter(({ holding }) => holding > 0).slice(0, SCORED_MAX);
}

/** Returns the most that the terms of a query can add to the score of a chunk, (k1 + 1) times less. */
export function weightMax(all: readonly QueryTerm[], { otherOf }: QueryWords): number {
  if (otherOf === undefined) return all.reduce((sum, { weight }) => sum + weight, 0);
  // A chunk has one language's term of a word. Terms that no chunk has weigh most, and count only if the word has no others.
  const best = new Map<number, { readonly isHeld: boolean; readonly weight: number }>();
  for (const { at, holding, weight } of all) {
    const place = otherOf[at] ?? at;
    const known = best.get(place);
    const isHeld = holding > 0;
    if (
      known === undefined ||
      (isHeld && !known.isHeld) ||
      (isHeld === known.isHeld && weight > known.weight)
    )
      best.set(place, { isHeld, weight });
  }
  return [...best.values()].reduce((sum, { weight }) => sum + weight, 0);
}

/** Languages of the texts of each part. A part never changes. */
const languagesOf = new WeakMap<object, readonly Language[]>();

/** Returns the languages other than English that any chunk of the scope is indexed in, or was in its parts. */
export function languagesIn({ parts }: Pick<WordSnapshot, "parts">): readonly Language[] {
  const found = new Set<Language>();
  for (const { part } of parts) {
    let known = languagesOf.get(part);
    if (known === undefined) {
      known = LANGUAGES.filter(({ mark }) => part.list(hashOf(mark)) !== undefined);
      languagesOf.set(part, known);
    }
    for (const language of known) found.add(language);
  }
  return LANGUAGES.filter((language) => found.has(language));
}

/** Whether any chunk contains a term. */
export function occursIn({ parts }: WordSnapshot, term: string): boolean {
  const hash = hashOf(term);
  return parts.some((live) => holdingIn(live, hash) > 0);
}

/** Returns the number of chunks that contain a term. */
export function holdingOf({ parts }: WordSnapshot, term: string): number {
  const hash = hashOf(term);
  return parts.reduce((sum, live) => sum + holdingIn(live, hash), 0);
}

function holdingIn({ part, removed }: LivePart, hash: number): number {
  const list = part.list(hash);
  return list === undefined ? 0 : list.count - removed.postings(list);
}

import { idf, IDF_MIN } from "../../../lexical/bm25.ts";
import type { QueryWords } from "../../../lexical/word-match.ts";
import { prepareBroadWords } from "./broad-words.ts";
import type { Connection } from "../database/connection.ts";
import type { Postings } from "./postings.ts";
import type { RowList } from "../../../index/row-list.ts";
import type { SearchTarget } from "../scopes/scopes.ts";

/** Maximum words of a query that count; the weightiest are used. */
const QUERY_TERMS_MAX = 64;

/** A word of a query with its weight and posting list. */
export interface QueryTerm {
  readonly term: string;
  /** Factor from its occurrences in the query. */
  readonly factor: number;
  /** `factor` × idf. */
  readonly weight: number;
  /** Sequences of the chunks that contain the term; undefined if it is known to be in most chunks. */
  readonly rows: RowList | undefined;
}

/** Returns the words of a query that count, by descending weight; undefined if a list is not read completely (postings.ts). */
export type QueryTerms = (target: SearchTarget, words: QueryWords) => readonly QueryTerm[] | undefined;

/** Prepares the lookup of query words. */
export function prepareQueryTerms(db: Connection, postings: Postings): QueryTerms {
  const broadWords = prepareBroadWords(db);
  return (target, words) => {
    const broad = broadWords(target);
    const lists = words.terms.map((term) => (broad.has(term) ? "broad" : postings.of(target, term)));
    if (lists.includes(undefined)) return undefined;
    return lists
      .map((list, at) => {
        const rows = list === "broad" ? undefined : list;
        const factor = words.factors[at] ?? 0;
        const weight = factor * (rows === undefined ? IDF_MIN : idf(rows.length, target.chunks));
        return { term: words.terms[at] ?? "", factor, weight, rows };
      })
      .sort((a, b) => b.weight - a.weight)
      .slice(0, QUERY_TERMS_MAX);
  };
}

/** Returns the terms that occur in at least one chunk. */
export function knownTerms(terms: readonly QueryTerm[]): readonly QueryTerm[] {
  return terms.filter(({ rows }) => rows === undefined || rows.length > 0);
}

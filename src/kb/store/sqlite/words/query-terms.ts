import { idf, IDF_MIN } from "../../../lexical/bm25.ts";
import type { QueryWords } from "../../../lexical/word-match.ts";
import { prepareBroadWords } from "./broad-words.ts";
import type { Connection } from "../database/connection.ts";
import type { Postings } from "./postings.ts";
import type { RowList } from "../../../index/row-list.ts";
import type { Place } from "../scopes/scopes.ts";

/** Those of them that count, the weightiest. */
const QUERY_TERMS_MAX = 64;

/** A word of a query with what the index knows of it. */
export interface QueryTerm {
  readonly term: string;
  /** Factor of its occurrences in the query. */
  readonly factor: number;
  /** That factor × idf. */
  readonly weight: number;
  /** Sequences of the chunks that hold the term; undefined of one that is known to stand in most chunks. */
  readonly rows: RowList | undefined;
}

/** The words of a query that count, by falling weight; undefined where a list is still to be read (postings.ts). */
export type QueryTerms = (place: Place, words: QueryWords) => readonly QueryTerm[] | undefined;

/** Prepares looking up the words of queries. */
export function prepareQueryTerms(db: Connection, postings: Postings): QueryTerms {
  const broadWords = prepareBroadWords(db);
  return (place, asked) => {
    const broad = broadWords(place);
    const lists = asked.terms.map((term) => (broad.has(term) ? "broad" : postings.of(place, term)));
    if (lists.includes(undefined)) return undefined;
    return lists
      .map((list, at) => {
        const rows = list === "broad" ? undefined : list;
        const factor = asked.factors[at] ?? 0;
        const weight = factor * (rows === undefined ? IDF_MIN : idf(rows.length, place.chunks));
        return { term: asked.terms[at] ?? "", factor, weight, rows };
      })
      .sort((a, b) => b.weight - a.weight)
      .slice(0, QUERY_TERMS_MAX);
  };
}

/** Those that stand anywhere at all. */
export function knownTerms(terms: readonly QueryTerm[]): readonly QueryTerm[] {
  return terms.filter(({ rows }) => rows === undefined || rows.length > 0);
}

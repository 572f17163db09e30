import { countTerms } from "../../../lexical/analyzer.ts";
import { documentScores, type WholeDocument } from "../../../lexical/documents.ts";
import { queryWords } from "../../../lexical/word-match.ts";
import type { DocumentMatch } from "../../documents.ts";
import type { Connection } from "../database/connection.ts";
import { indexedText } from "../database/parts.ts";
import { knownTerms, type QueryTerms } from "./query-terms.ts";
import type { Place } from "../scopes/scopes.ts";

/**
 * Documents of more chunks are not looked at: they are about many things, and their texts would be most of a search. With
 * these a search of 50 rows reads at most 400 chunks, in some 10 ms.
 */
const DOCUMENT_CHUNKS_MAX = 8;

/** Documents of rows by the words of a query; undefined: to be called again (postings.ts). */
export type DocumentWords = (
  place: Place,
  query: string,
  rows: readonly number[],
) => DocumentMatch[] | undefined;

interface DocumentRow {
  readonly title: string;
  readonly first_row: number;
  readonly chunks: number;
}

/** Prepares the judging of whole documents, from their texts. */
export function prepareDocumentWords(db: Connection, queryTerms: QueryTerms): DocumentWords {
  const selectNumber = db.prepare<[number], number>("SELECT resource FROM chunk WHERE row = ?").pluck();
  const selectDocument = db.prepare<[number], DocumentRow>(
    "SELECT title, first_row, chunks FROM resource WHERE number = ?",
  );
  const selectTexts = db
    .prepare<[number, number], [headings: string, text: string, words: number]>(
      "SELECT headings, text, words FROM chunk WHERE row BETWEEN ? AND ?",
    )
    .raw();

  function read({ title, first_row: first, chunks }: DocumentRow, names: readonly string[]): WholeDocument {
    const counts = names.map(() => 0);
    let words = 0;
    for (const [headings, text, count] of selectTexts.all(first, first + chunks - 1)) {
      words += count;
      const found = countTerms(indexedText(title, headings, text), names);
      for (const [at, times] of found.entries()) counts[at] = (counts[at] ?? 0) + times;
    }
    return { counts, words, chunks };
  }

  return (place, query, rows) => {
    const terms = queryTerms(place, queryWords(query));
    if (terms === undefined) return undefined;
    const known = knownTerms(terms);
    const names = known.map(({ term }) => term);
    const numberOf = new Map<number, number>();
    const documents = new Map<number, WholeDocument>();
    for (const row of rows) {
      const number = row < place.range.first || row > place.range.last ? undefined : selectNumber.get(row);
      if (number === undefined) continue;
      numberOf.set(row, number);
      if (documents.has(number)) continue;
      const document = selectDocument.get(number);
      if (document === undefined || document.chunks > DOCUMENT_CHUNKS_MAX) continue;
      documents.set(number, read(document, names));
    }
    const asked = known.map(({ factor, rows: list }) => ({
      factor,
      share: list === undefined ? 1 : Math.min(1, list.length / place.chunks),
    }));
    const scores = documentScores([...documents.values()], asked, place.chunks);
    const scoreOf = new Map([...documents.keys()].map((number, at) => [number, scores[at] ?? 0]));
    return [...numberOf].flatMap(([row, number]) => {
      const bm25 = scoreOf.get(number);
      return bm25 === undefined ? [] : { row, bm25, chunks: documents.get(number)?.chunks ?? 1 };
    });
  };
}

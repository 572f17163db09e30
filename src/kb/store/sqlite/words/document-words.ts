import { countTerms } from "../../../lexical/analyzer.ts";
import { documentScores, type WholeDocument } from "../../../lexical/documents.ts";
import type { QueryWords } from "../../../lexical/word-match.ts";
import type { DocumentMatch } from "../../search-index.ts";
import type { Connection } from "../database/connection.ts";
import { indexedText, NAMES } from "../database/parts.ts";
import { knownTerms, type QueryTerms } from "./query-terms.ts";
import type { SearchTarget } from "../scopes/scopes.ts";

/**
 * Documents of more chunks are not scored: they have many subjects, and reading them would dominate the time of a search.
 * With this bound a search of 50 rows reads at most 400 chunks, in about 10 ms.
 */
const DOCUMENT_CHUNKS_MAX = 8;

/** Scores the documents of rows by the words of a query; undefined: call again (postings.ts). */
export type DocumentWords = (
  target: SearchTarget,
  words: QueryWords,
  rows: readonly number[],
) => DocumentMatch[] | undefined;

interface DocumentRow {
  readonly names: string;
  readonly first_row: number;
  readonly chunks: number;
}

/** Prepares the scoring of whole documents from their texts. */
export function prepareDocumentWords(db: Connection, queryTerms: QueryTerms): DocumentWords {
  const selectNumber = db.prepare<[number], number>("SELECT resource FROM chunk WHERE row = ?").pluck();
  const selectDocument = db.prepare<[number], DocumentRow>(
    `SELECT ${NAMES} AS names, first_row, chunks FROM resource WHERE number = ?`,
  );
  const selectTexts = db
    .prepare<[number, number], [headings: string, text: string, words: number]>(
      "SELECT headings, text, words FROM chunk WHERE row BETWEEN ? AND ?",
    )
    .raw();

  function read({ names, first_row: first, chunks }: DocumentRow, terms: readonly string[]): WholeDocument {
    const counts = terms.map(() => 0);
    let words = 0;
    for (const [headings, text, count] of selectTexts.all(first, first + chunks - 1)) {
      words += count;
      const found = countTerms(indexedText(names, headings, text), terms);
      for (const [at, times] of found.entries()) counts[at] = (counts[at] ?? 0) + times;
    }
    return { counts, words, chunks };
  }

  return (target, words, rows) => {
    const terms = queryTerms(target, words);
    if (terms === undefined) return undefined;
    const known = knownTerms(terms);
    const names = known.map(({ term }) => term);
    const numberOf = new Map<number, number>();
    const documents = new Map<number, WholeDocument>();
    for (const row of rows) {
      const number = row < target.range.first || row > target.range.last ? undefined : selectNumber.get(row);
      if (number === undefined) continue;
      numberOf.set(row, number);
      if (documents.has(number)) continue;
      const document = selectDocument.get(number);
      if (document === undefined || document.chunks > DOCUMENT_CHUNKS_MAX) continue;
      documents.set(number, read(document, names));
    }
    const weighted = known.map(({ factor, rows: list }) => ({
      factor,
      share: list === undefined ? 1 : Math.min(1, list.length / target.chunks),
    }));
    const scores = documentScores([...documents.values()], weighted, target.chunks);
    const scoreOf = new Map([...documents.keys()].map((number, at) => [number, scores[at] ?? 0]));
    return [...numberOf].flatMap(([row, number]) => {
      const bm25 = scoreOf.get(number);
      return bm25 === undefined ? [] : { ref: row, bm25, chunks: documents.get(number)?.chunks ?? 1 };
    });
  };
}

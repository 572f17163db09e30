import type { WordSnapshot } from "../../../index/words/query-terms.ts";
import type { QueryWords } from "../../../lexical/word-match.ts";
import type { DocumentMatch } from "../../search-index.ts";
import { scoreDocuments, type IndexedDocument } from "../../search/document-words.ts";
import type { SearchTarget } from "../../search/search-target.ts";
import type { Connection } from "../database/connection.ts";

/** Scores the documents of rows by the words of a query. */
export type DocumentWords = (
  snapshot: WordSnapshot,
  target: SearchTarget,
  words: QueryWords,
  rows: readonly number[],
) => DocumentMatch[];

/** Prepares the scoring of whole documents. */
export function prepareDocumentWords(db: Connection): DocumentWords {
  const selectDocument = db.prepare<[number], IndexedDocument>(`
    SELECT number, first_row AS firstRow, chunks FROM resource
    WHERE number = (SELECT resource FROM chunk WHERE row = ?)`);

  return (snapshot, target, words, rows) => {
    const documents = new Map<number, IndexedDocument>();
    for (const row of rows) {
      const found = row < target.range.first || row > target.range.last ? undefined : selectDocument.get(row);
      if (found !== undefined) documents.set(row, found);
    }
    return scoreDocuments(snapshot, target, words, documents);
  };
}

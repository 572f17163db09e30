import { rowOf } from "../../../index/rows.ts";
import {
  queryTerms,
  scoredTerms,
  type QueryTerm,
  type WordSnapshot,
} from "../../../index/words/query-terms.ts";
import { countTerms } from "../../../index/words/word-counts.ts";
import { documentScores, type WholeDocument } from "../../../lexical/documents.ts";
import type { QueryWords } from "../../../lexical/word-match.ts";
import type { DocumentMatch } from "../../search-index.ts";
import type { Connection } from "../database/connection.ts";
import type { SearchTarget } from "../../search/search-target.ts";

/** Documents of more chunks are not scored: they have many subjects. */
const DOCUMENT_CHUNKS_MAX = 8;

/** Scores the documents of rows by the words of a query. */
export type DocumentWords = (
  snapshot: WordSnapshot,
  target: SearchTarget,
  words: QueryWords,
  rows: readonly number[],
) => DocumentMatch[];

interface DocumentRow {
  readonly first_row: number;
  readonly chunks: number;
}

/** Prepares the scoring of whole documents. */
export function prepareDocumentWords(db: Connection): DocumentWords {
  const selectNumber = db.prepare<[number], number>("SELECT resource FROM chunk WHERE row = ?").pluck();
  const selectDocument = db.prepare<[number], DocumentRow>(
    "SELECT first_row, chunks FROM resource WHERE number = ?",
  );

  return (snapshot, target, words, rows) => {
    const known = scoredTerms(queryTerms(snapshot, words));
    const numberOf = new Map<number, number>();
    const documents = new Map<number, WholeDocument>();
    for (const row of rows) {
      const number = row < target.range.first || row > target.range.last ? undefined : selectNumber.get(row);
      if (number === undefined) continue;
      numberOf.set(row, number);
      if (documents.has(number)) continue;
      const document = selectDocument.get(number);
      if (document === undefined || document.chunks > DOCUMENT_CHUNKS_MAX) continue;
      documents.set(
        number,
        countDocument(snapshot, known, document.first_row - rowOf(target.scope, 0), document),
      );
    }
    const weighted = known.map(({ factor, holding }) => ({ factor, share: holding / target.chunks }));
    const scores = documentScores([...documents.values()], weighted, target.chunks);
    const scoreOf = new Map([...documents.keys()].map((number, at) => [number, scores[at] ?? 0]));
    return [...numberOf].flatMap(([row, number]) => {
      const bm25 = scoreOf.get(number);
      return bm25 === undefined ? [] : { ref: row, bm25, chunks: documents.get(number)?.chunks ?? 1 };
    });
  };
}

/** Counts terms in a document whose chunks begin at a sequence. */
function countDocument(
  snapshot: WordSnapshot,
  terms: readonly QueryTerm[],
  first: number,
  { chunks }: DocumentRow,
): WholeDocument {
  const counted = countTerms(
    snapshot,
    terms,
    Array.from({ length: chunks }, (_, at) => first + at),
  );
  const sum = (of: (chunk: NonNullable<(typeof counted)[number]>) => number): number =>
    counted.reduce((total, chunk) => total + (chunk === undefined ? 0 : of(chunk)), 0);
  return {
    counts: terms.map(({ at }) => sum(({ counts }) => counts[at] ?? 0)),
    words: sum(({ words }) => words),
    chunks,
  };
}

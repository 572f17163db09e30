import { rowOf } from "../../index/rows.ts";
import { queryTerms, scoredTerms, type QueryTerm, type WordSnapshot } from "../../index/words/query-terms.ts";
import { countTerms } from "../../index/words/word-counts.ts";
import { documentScores, type WholeDocument } from "../../lexical/documents.ts";
import type { QueryWords } from "../../lexical/word-match.ts";
import type { DocumentMatch } from "../search-index.ts";
import type { SearchTarget } from "./search-target.ts";

/** Documents of more chunks are not scored: they have many subjects. */
const DOCUMENT_CHUNKS_MAX = 8;

/** A document, and where its chunks are. */
export interface IndexedDocument {
  readonly number: number;
  readonly firstRow: number;
  readonly chunks: number;
}

/** Scores whole documents by the words of a query. `documentOf` has the document of each row. */
export function scoreDocuments(
  snapshot: WordSnapshot,
  target: SearchTarget,
  words: QueryWords,
  documentOf: ReadonlyMap<number, IndexedDocument>,
): DocumentMatch[] {
  const known = scoredTerms(queryTerms(snapshot, words));
  const documents = new Map<number, WholeDocument>();
  for (const { number, firstRow, chunks } of documentOf.values()) {
    if (documents.has(number) || chunks > DOCUMENT_CHUNKS_MAX) continue;
    documents.set(number, countDocument(snapshot, known, firstRow - rowOf(target.scope, 0), chunks));
  }
  const weighted = known.map(({ factor, holding }) => ({ factor, share: holding / target.chunks }));
  const scores = documentScores([...documents.values()], weighted, target.chunks);
  const scoreOf = new Map([...documents.keys()].map((number, at) => [number, scores[at] ?? 0]));
  return [...documentOf].flatMap(([row, { number }]) => {
    const bm25 = scoreOf.get(number);
    return bm25 === undefined ? [] : { ref: row, bm25, chunks: documents.get(number)?.chunks ?? 1 };
  });
}

/** Counts terms in a document whose chunks begin at a sequence. */
function countDocument(
  snapshot: WordSnapshot,
  terms: readonly QueryTerm[],
  first: number,
  chunks: number,
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

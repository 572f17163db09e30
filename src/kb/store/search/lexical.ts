import { rowOf, type RowRange } from "../../index/rows.ts";
import type { WordSnapshot } from "../../index/words/query-terms.ts";
import { matchWords } from "../../index/words/word-counts.ts";
import { searchWords } from "../../index/words/word-search.ts";
import type { QueryWords } from "../../lexical/word-match.ts";
import type { ChunkMatch, LexicalHits } from "../search-index.ts";
import type { SearchTarget } from "./search-target.ts";

/** Finds chunks of a search's rows by the words of a query, best first. */
export function searchLexical(
  snapshot: WordSnapshot,
  target: SearchTarget,
  words: QueryWords,
  limit: number,
): LexicalHits {
  const { scope, allowed } = target;
  const { hits, ceiling } = searchWords(snapshot, { words, limit, ...sequences(target), allowed });
  return {
    ceiling,
    hits: hits.map(({ sequence, bm25, match }) => ({ ref: rowOf(scope, sequence), bm25, match })),
  };
}

/** Matches chunks with the words of a query. Leaves out rows that no longer exist. */
export function matchRows(
  snapshot: WordSnapshot,
  target: SearchTarget,
  words: QueryWords,
  rows: readonly number[],
): ChunkMatch[] {
  const wanted = rows.filter((row) => row >= target.range.first && row <= target.range.last);
  const base = rowOf(target.scope, 0);
  const matches = matchWords(
    snapshot,
    words,
    wanted.map((row) => row - base),
  );
  return wanted.flatMap((ref, at) => {
    const match = matches[at];
    return match === undefined ? [] : { ref, match };
  });
}

/** The sequences of a search's rows. */
function sequences({ scope, range }: { readonly scope: number; readonly range: RowRange }): RowRange {
  return { first: range.first - rowOf(scope, 0), last: range.last - rowOf(scope, 0) };
}

import type { DocumentMatch } from "../store/documents.ts";
import type { Ranked } from "./rerank.ts";

/** Largest share of the document in what the words say of a chunk. */
const DOCUMENT_SHARE = 0.5;
/** A document of this many chunks has that share; of one with more, each has the less. */
const SHORT_CHUNKS = 4;

/** A hit whose mix is known by parts. */
export interface WordRanked extends Ranked {
  /** What the words say of it, [0, 1]. */
  readonly words: number;
  /** Weight of `words` in the mix. */
  readonly wordShare: number;
}

/**
 * Lets the document have a say in what the words tell of a chunk: one of a few chunks is about one thing, and the chunk
 * that names it is often not the one that says what of it. The best document has what the best of these chunks has by its
 * own words, so that chunks of long documents, which are not matched, neither gain nor lose. Sorted by mix, ties by row. Pure.
 */
export function mixDocuments<T extends WordRanked>(
  hits: readonly T[],
  matches: readonly DocumentMatch[],
): readonly T[] {
  const byRow = new Map(matches.map((match) => [match.row, match]));
  const most = Math.max(0, ...matches.map(({ bm25 }) => bm25));
  if (most === 0) return hits;
  const scale = Math.max(0, ...hits.map(({ row, words }) => (byRow.has(row) ? words : 0))) / most;
  return hits
    .map((hit) => {
      const match = byRow.get(hit.row);
      if (match === undefined) return hit;
      const share = DOCUMENT_SHARE * Math.min(1, SHORT_CHUNKS / match.chunks);
      const more = match.bm25 * scale - hit.words;
      return { ...hit, mix: hit.mix + share * hit.wordShare * more };
    })
    .sort((a, b) => b.mix - a.mix || a.row - b.row);
}

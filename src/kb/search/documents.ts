import type { DocumentMatch } from "../store/search-index.ts";
import type { Ranked } from "./rerank.ts";

/** Largest weight of the document's BM25 in a chunk's lexical score. */
const DOCUMENT_SHARE = 0.5;
/** Documents of up to this many chunks have the full weight. Beyond, it falls in proportion to the number of chunks. */
const SHORT_CHUNKS = 4;

/** A hit with the lexical part of its mix. */
export interface WordRanked extends Ranked {
  /** Lexical score, [0, 1]. */
  readonly words: number;
  /** Weight of `words` in the mix. */
  readonly wordShare: number;
}

/**
 * Blends the BM25 of the whole document into the lexical score of each chunk. A short document has one subject, and the
 * chunk that names the subject is often not the chunk that answers. Scales the best document to the best lexical score
 * among the matched chunks, so that chunks of long documents, which have no match, neither gain nor lose. Sorts by mix,
 * ties by ref. Pure.
 */
export function mixDocuments<T extends WordRanked>(
  hits: readonly T[],
  matches: readonly DocumentMatch[],
): readonly T[] {
  const byRef = new Map(matches.map((match) => [match.ref, match]));
  const bm25Max = Math.max(0, ...matches.map(({ bm25 }) => bm25));
  if (bm25Max === 0) return hits;
  const scale = Math.max(0, ...hits.map(({ ref, words }) => (byRef.has(ref) ? words : 0))) / bm25Max;
  return hits
    .map((hit) => {
      const match = byRef.get(hit.ref);
      if (match === undefined) return hit;
      const share = DOCUMENT_SHARE * Math.min(1, SHORT_CHUNKS / match.chunks);
      const gain = match.bm25 * scale - hit.words;
      return { ...hit, mix: hit.mix + share * hit.wordShare * gain };
    })
    .sort((a, b) => b.mix - a.mix || a.ref - b.ref);
}

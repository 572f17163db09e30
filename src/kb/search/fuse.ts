import type { ChunkRef } from "../store/records.ts";
import type { LexicalHit, VectorHit } from "../store/search-index.ts";

/** Number of chunks that each kind of search contributes to the fused list. */
export const FUSED_DEPTH = 100;
/** Weight of the lexical score in the mix; the cosine has the rest. */
const LEXICAL_SHARE = 0.5;

/** A chunk in the fused list. */
export interface Fused {
  readonly ref: ChunkRef;
  /** Fused score, [0, 1]; 1 for a chunk that is best by words and by vector. */
  readonly mix: number;
  /** BM25 divided by the best BM25. */
  readonly words: number;
  /** Weight of `words` in the mix. */
  readonly wordShare: number;
  /** Undefined for a chunk without a vector. */
  readonly cosine: number | undefined;
}

/**
 * Merges lexical hits and nearest vectors, each at most `depth` long and best first. Divides BM25 by the best BM25,
 * stretches the cosines to [0, 1] and takes the mean. A chunk that matches no query word has a BM25 of 0. `others` holds
 * the cosines of chunks that only the lexical search found: counting them as 0 because they are not among the nearest
 * cost 0.005 nDCG@10 on SciFact's train queries.
 *
 * A chunk without a vector is ranked by its lexical score alone: a vector that is still pending says nothing about the
 * chunk.
 *
 * On four judged sets this mean was never clearly below reciprocal rank fusion. Sorted by mix, ties by ref. Pure.
 */
export function fuse(
  lexical: readonly LexicalHit[],
  nearest: readonly VectorHit[],
  others: readonly VectorHit[] = [],
  depth: number = FUSED_DEPTH,
): Fused[] {
  const bm25Max = lexical[0]?.bm25 ?? 1;
  const cosines = [...nearest, ...others];
  const wordsOf = new Map(lexical.map(({ ref, bm25 }) => [ref, bm25 / bm25Max]));
  const cosineOf = new Map(cosines.map(({ ref, cosine }) => [ref, cosine]));
  const stretched = stretch(cosines, nearest.length < depth);
  // Without a lexical hit the cosine has all the weight.
  const share = lexical.length > 0 ? LEXICAL_SHARE : 0;
  return [...new Set([...wordsOf.keys(), ...cosineOf.keys()])]
    .map((ref) => {
      const words = wordsOf.get(ref) ?? 0;
      const cosine = cosineOf.get(ref);
      if (cosine === undefined) return { ref, mix: words, words, wordShare: 1, cosine };
      return { ref, mix: share * words + (1 - share) * stretched(cosine), words, wordShare: share, cosine };
    })
    .sort((a, b) => b.mix - a.mix || a.ref - b.ref);
}

/**
 * Maps the largest cosine to 1 and the smallest to 0. If the list holds every chunk of the scope, maps 0 to 0 instead: the
 * farthest of a few chunks may still be near.
 */
function stretch(cosines: readonly VectorHit[], isAll: boolean): (cosine: number) => number {
  let max = -Infinity;
  let min = isAll ? 0 : Infinity;
  for (const { cosine } of cosines) {
    max = Math.max(max, cosine);
    min = Math.min(min, Math.max(0, cosine));
  }
  return (cosine) => (max > min ? Math.max(0, (cosine - min) / (max - min)) : 1);
}

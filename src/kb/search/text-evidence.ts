import { closeness } from "../lexical/closeness.ts";
import type { QueryWords } from "../lexical/word-match.ts";
import type { ChunkRef } from "../store/chunks.ts";
import type { FoundChunk } from "../store/search-index.ts";
import type { Ranked } from "./rerank.ts";

/** Weights of closeness and of a neighbour's lead in cosine, in addition to the mix. `node bench/fit.ts` compares others. */
export const TEXT_WEIGHTS = { closeness: 0.2, neighbour: 0.2 };
/** Hits whose texts are read for it, the first ones: 50 gain no more and take more than twice the time. */
const CLOSENESS_DEPTH = 20;
/** Characters between two chunks that follow each other: the white space that chunking drops. */
const GAP_CHARS_MAX = 16;

/** A chunk, as far as this evidence needs it. */
export type EvidentChunk = Pick<FoundChunk, "ref" | "resourceId" | "start" | "end" | "text">;

/**
 * Raises hits by what only their texts say: how close together the words of the query stand, and by how much the chunk before or
 * behind is nearer by meaning, because an answer may begin in one chunk and end in the next. Only the given chunks have texts
 * and neighbours, the best first; the others keep their mix. Sorts by mix, ties by ref. Pure.
 */
export function mixTexts<T extends Ranked & { readonly cosine: number | undefined }>(
  hits: readonly T[],
  chunks: readonly EvidentChunk[],
  query: QueryWords,
  weights: typeof TEXT_WEIGHTS = TEXT_WEIGHTS,
): readonly T[] {
  const cosines = new Map(hits.map(({ ref, cosine }) => [ref, cosine]));
  const gains = new Map<ChunkRef, number>();
  for (const { ref, text } of chunks.slice(0, CLOSENESS_DEPTH))
    gains.set(ref, weights.closeness * closeness(query, text));
  for (const [ref, neighbour] of nearestNeighbours(chunks, cosines)) {
    const lead = Math.max(0, neighbour - (cosines.get(ref) ?? Infinity));
    gains.set(ref, (gains.get(ref) ?? 0) + weights.neighbour * lead);
  }
  return hits
    .map((hit) => ({ ...hit, mix: hit.mix + (gains.get(hit.ref) ?? 0) }))
    .sort((a, b) => b.mix - a.mix || a.ref - b.ref);
}

/** Returns the larger cosine of each chunk's neighbours among the given chunks; none for a chunk without neighbours. */
function nearestNeighbours(
  chunks: readonly EvidentChunk[],
  cosines: ReadonlyMap<ChunkRef, number | undefined>,
): ReadonlyMap<ChunkRef, number> {
  const found = new Map<ChunkRef, number>();
  const add = (ref: ChunkRef, neighbour: ChunkRef): void => {
    const cosine = cosines.get(neighbour);
    if (cosine !== undefined) found.set(ref, Math.max(cosine, found.get(ref) ?? -1));
  };
  for (const document of Map.groupBy(chunks, ({ resourceId }) => resourceId).values()) {
    const inOrder = document.toSorted((a, b) => a.start - b.start || a.ref - b.ref);
    for (const [at, chunk] of inOrder.entries()) {
      const next = inOrder[at + 1];
      if (next === undefined || next.start - chunk.end > GAP_CHARS_MAX) continue;
      add(chunk.ref, next.ref);
      add(next.ref, chunk.ref);
    }
  }
  return found;
}

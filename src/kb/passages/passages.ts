import type { Expand } from "../../wire/context.ts";
import type { FoundChunk, Surroundings } from "../store/search-index.ts";
import { holds, joinRanges, piecesOf, piecesWithin, type PieceRange, type Pieces } from "./pieces.ts";
import { sectionAround } from "./section.ts";

/** A chunk that a search found. */
export interface Hit {
  readonly chunk: FoundChunk;
  readonly score: number;
  /** Further hits with nearly the same text. */
  readonly duplicates: readonly FoundChunk[];
}

/** A hit in the pieces of its document. */
export interface LocatedHit extends Hit {
  readonly own: PieceRange;
  /** What the search returns of the text around it; holds `own`. */
  readonly wanted: PieceRange;
}

/** A part of a document with the hits in it, best first; at least one. */
export interface Passage {
  readonly hits: readonly [LocatedHit, ...LocatedHit[]];
  readonly pieces: Pieces;
  readonly range: PieceRange;
  /** Set for a single chunk as the search found it: with what the chunk repeats, and cut where it is. */
  readonly chunk?: FoundChunk;
}

/** Returns the hit as a passage of its own. Pure. */
export function passageOf(hit: Hit): Passage {
  const { chunk } = hit;
  const { before = "", after = "", text, start, line, locations } = chunk;
  const own = text.slice(before.length, text.length - after.length);
  const pieces = piecesOf({ start, text: own, line, locations, isBegin: false, isEnd: false, before });
  const range = { first: 0, last: pieces.begins.length - 1 };
  return { hits: [{ ...hit, own: range, wanted: range }], pieces, range, chunk };
}

/**
 * Expands each hit, and merges those of one document whose texts overlap or touch. A hit around which no text was read stays as
 * it is. `clues` are hits that sections grow over, best first. By the best hit of each. Pure.
 */
export function expandHits(
  hits: readonly Hit[],
  clues: readonly Pick<FoundChunk, "ref" | "start" | "end">[],
  surroundings: readonly Surroundings[],
  expand: Expand,
  tokensMax: number,
): Passage[] {
  const rest = new Map(hits.map((hit) => [hit.chunk.ref, hit]));
  const passages = surroundings.flatMap((source) => {
    const within = new Set(source.chunks.map(({ ref }) => ref));
    const inside = hits.filter(({ chunk }) => within.has(chunk.ref));
    const pieces = piecesOf(source);
    const spans = clues.flatMap((clue) => (within.has(clue.ref) ? (piecesWithin(pieces, clue) ?? []) : []));
    const located = inside.flatMap((hit): LocatedHit[] => {
      const own = piecesWithin(pieces, hit.chunk);
      if (own === undefined) return [];
      rest.delete(hit.chunk.ref);
      const wanted =
        expand === "section"
          ? sectionAround(pieces, own, spans, tokensMax)
          : neighboursOf(source, pieces, own, hit.chunk, expand === "neighbours" ? 1 : expand);
      return [{ ...hit, own, wanted }];
    });
    return mergedPassages(pieces, located);
  });
  return byBest([...passages, ...[...rest.values()].map(passageOf)]);
}

/** Returns passages of hits in one text, those whose wanted texts overlap or touch as one. Pure. */
export function mergedPassages(pieces: Pieces, hits: readonly LocatedHit[]): Passage[] {
  const byScore = hits.toSorted(byRank);
  return mergeTouching(hits.map(({ wanted }) => wanted)).flatMap((range) => {
    const [best, ...others] = byScore.filter(({ own }) => holds(range, own));
    return best === undefined ? [] : [{ hits: [best, ...others], pieces, range }];
  });
}

/** Merges ranges that overlap or touch. The order does not matter; the result ascends. Pure. */
function mergeTouching(ranges: readonly PieceRange[]): PieceRange[] {
  const merged: PieceRange[] = [];
  for (const range of ranges.toSorted((a, b) => a.first - b.first || a.last - b.last)) {
    const last = merged.at(-1);
    if (last !== undefined && range.first <= last.last + 1)
      merged[merged.length - 1] = joinRanges(last, range);
    else merged.push(range);
  }
  return merged;
}

/** Orders passages as the search orders their best hits. */
export function byBest(passages: readonly Passage[]): Passage[] {
  return passages.toSorted((a, b) => byRank(a.hits[0], b.hits[0]));
}

/** Orders hits as the search does. */
export function byRank(a: Hit, b: Hit): number {
  return b.score - a.score || (a.chunk.id < b.chunk.id ? -1 : 1);
}

/** Returns the chunk with `count` chunks on each side. */
function neighboursOf(
  { chunks }: Surroundings,
  pieces: Pieces,
  own: PieceRange,
  { ref }: FoundChunk,
  count: number,
): PieceRange {
  const at = chunks.findIndex((chunk) => chunk.ref === ref);
  const start = chunks[Math.max(0, at - count)]?.start ?? 0;
  const end = chunks[Math.min(chunks.length - 1, at + count)]?.end ?? 0;
  return piecesWithin(pieces, { start, end }) ?? own;
}

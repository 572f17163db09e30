import type { Settings } from "../../../wire/primitives.ts";
import { outlineOf } from "./outline.ts";
import type { Pieces, Sizes } from "./pieces.ts";
import { sizesOf } from "./pieces.ts";
import { framedEnd, latestEnd, planChunks } from "./plan.ts";

/** Units per chunk aimed at: smaller units carry too little meaning. */
const UNITS_A_CHUNK = 5;
/** Minimum length aimed at: a sentence. */
const UNIT_CHARS_MIN = 120;

/** UTF-16 offsets, end exclusive. */
export interface Range {
  readonly start: number;
  readonly end: number;
}

/** Returns the ranges of a text's units, in order; undefined if there are too many, see `unitsOf`. */
export function unitRanges(text: string, settings: Settings, unitsMax: number): readonly Range[] | undefined {
  const sizes = sizesOf(settings.chunkSize, settings.chunkOverlap);
  const { pieces } = outlineOf(text, sizes);
  const first = unitsOf(pieces, sizes, unitsMax);
  return first?.map((piece, unit) => ({
    start: pieces.begins[piece] ?? 0,
    end: pieces.ends[(first[unit + 1] ?? pieces.ends.length) - 1] ?? text.length,
  }));
}

/**
 * Groups pieces into units, the smallest parts that are embedded, along the structure of the text. Returns the first piece of each
 * unit. A unit always fits into a chunk together with the overlap before it. `unitsMax` makes the units of a long text longer;
 * returns undefined if they would exceed half a chunk.
 */
export function unitsOf(pieces: Pieces, sizes: Sizes, unitsMax: number): readonly number[] | undefined {
  const count = pieces.begins.length;
  const chars = (pieces.ends[count - 1] ?? 0) - (pieces.begins[0] ?? 0);
  const half = sizes.chunk >> 1;
  const usual = Math.max(Math.min(UNIT_CHARS_MIN, half), Math.floor(sizes.chunk / UNITS_A_CHUNK));
  // Units turn out shorter than `length`, by less than half.
  const length = Math.max(usual, Math.ceil((2 * chars) / unitsMax));
  if (length > half) return undefined;
  // Units repeat no table heads or fences: they are only embedded.
  const last = planChunks({ ...pieces, frames: [] }, { ...sizes, chunk: length, overlap: 0, room: length });
  const first: number[] = [];
  for (let piece = 0; piece < count;) {
    first.push(piece);
    const limit = latestEnd(pieces, sizes, piece);
    const planned = last[piece] ?? piece;
    let until = piece;
    while (until < planned && framedEnd(pieces, until + 1) <= limit) until++;
    piece = until + 1;
  }
  return first.length > unitsMax ? undefined : first;
}

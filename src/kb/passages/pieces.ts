import { countTokens } from "../../lib/tokens.ts";
import { outlineOf } from "../ingest/chunk/outline.ts";
import { sizesOf } from "../ingest/chunk/pieces.ts";
import type { Surroundings } from "../store/search-index.ts";

/** A part of a document's text as its sentences, lines and headings: where a passage may begin and end. */
export interface Pieces {
  readonly source: Pick<Surroundings, "start" | "text" | "line" | "locations">;
  /** Offsets in the content of the resource, ascending; between `ends[i]` and `begins[i + 1]` is only white space. */
  readonly begins: readonly number[];
  readonly ends: readonly number[];
  /** `tokens[i]` is the number of tokens before piece `i`; there is one more than pieces. */
  readonly tokens: readonly number[];
  readonly headings: readonly { readonly piece: number; readonly level: number }[];
  /** Whether the first and the last piece are those of the whole text. */
  readonly isBegin: boolean;
  readonly isEnd: boolean;
}

/** Consecutive pieces, both included. */
export interface PieceRange {
  readonly first: number;
  readonly last: number;
}

/** Longest line of code and sentence that is one piece. */
const PIECE_CHARS = 1000;

/** Finds the pieces of a text. Linear. Pure. */
export function piecesOf(source: Omit<Surroundings, "chunks">): Pieces {
  const { before, text, start, isBegin, isEnd } = source;
  // With the opening fence before it, code is no headings.
  const outline = outlineOf(before + text, sizesOf(PIECE_CHARS, 0));
  const shift = start - before.length;
  const skipped = outline.pieces.begins.findLastIndex((at) => at < before.length) + 1;
  const begins = outline.pieces.begins.slice(skipped).map((at) => at + shift);
  const ends = outline.pieces.ends.slice(skipped).map((at) => at + shift);
  const tokens = [0];
  let sum = 0;
  for (const [at, begin] of begins.entries()) {
    // A piece counts with the white space behind it, so that the sum is never below the count of the pieces together.
    sum += countTokens(text.slice(begin - start, (begins[at + 1] ?? start + text.length) - start));
    tokens.push(sum);
  }
  const headings = outline.headings
    .filter(({ piece }) => piece >= skipped)
    .map(({ piece, level }) => ({ piece: piece - skipped, level }));
  return { source, begins, ends, tokens, headings, isBegin, isEnd };
}

/** Returns the fewest pieces that hold the text from `start` to `end`; undefined if there are none. */
export function piecesWithin(
  { begins, ends }: Pieces,
  { start, end }: { readonly start: number; readonly end: number },
): PieceRange | undefined {
  const first = Math.max(
    0,
    begins.findLastIndex((at) => at <= start),
  );
  const next = ends.findIndex((at) => at >= end);
  const last = next === -1 ? ends.length - 1 : next;
  return last < first ? undefined : { first, last };
}

/** Returns the tokens of some pieces: at least those of their text. */
export function tokensOf({ tokens }: Pieces, { first, last }: PieceRange): number {
  return (tokens[last + 1] ?? 0) - (tokens[first] ?? 0);
}

/** Returns the text of some pieces. */
export function textOf(pieces: Pieces, range: PieceRange): string {
  const { start, end } = offsetsOf(pieces, range);
  return pieces.source.text.slice(start - pieces.source.start, end - pieces.source.start);
}

/** Returns the offsets of some pieces in the content of the resource. */
export function offsetsOf(
  { begins, ends }: Pieces,
  { first, last }: PieceRange,
): { readonly start: number; readonly end: number } {
  return { start: begins[first] ?? 0, end: ends[last] ?? 0 };
}

/** Returns the smallest range that holds both. */
export function joinRanges(a: PieceRange, b: PieceRange): PieceRange {
  return { first: Math.min(a.first, b.first), last: Math.max(a.last, b.last) };
}

/** Whether one range holds all of the other. */
export function holds(outer: PieceRange, inner: PieceRange): boolean {
  return outer.first <= inner.first && inner.last <= outer.last;
}

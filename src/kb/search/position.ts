import { countNewlines } from "../../lib/count-newlines.ts";
import { oneLine } from "../../lib/one-line.ts";
import type { NumberRange } from "../../wire/primitives.ts";
import { pagesWithin } from "../store/pages.ts";
import type { Chunk } from "../store/records.ts";
import type { FoundChunk } from "../store/search-index.ts";

/** The position of a text in the content of its resource. */
export interface Position {
  /** UTF-16 offsets, end exclusive. */
  readonly start: number;
  readonly end: number;
  readonly lines?: NumberRange;
  readonly pages?: NumberRange;
}

/**
 * Returns the position of the text from `start` to `end`, which lies within the chunk. Default: all of the chunk but what it
 * repeats. Lines end with a line feed, which belongs to the line. Pure.
 */
export function positionOf(
  chunk: Pick<Chunk, "start" | "end" | "before" | "text" | "line" | "pages">,
  { start, end }: Pick<Position, "start" | "end"> = chunk,
): Position {
  const { before = "", text, line } = chunk;
  /** Lines between two offsets into the content. */
  const between = (from: number, to: number): number =>
    countNewlines(text, before.length + from - chunk.start, before.length + to - chunk.start);
  const first = line === undefined ? undefined : line + between(chunk.start, start);
  const pages = pagesWithin(chunk.pages, start, end);
  const [firstPage, lastPage] = [pages[0]?.number, pages.at(-1)?.number];
  return {
    start,
    end,
    ...(first !== undefined && { lines: { first, last: first + between(start, end - 1) } }),
    ...(firstPage !== undefined && lastPage !== undefined && { pages: { first: firstPage, last: lastPage } }),
  };
}

/** Returns the title and the headings of a chunk in one line. Pure. */
export function pathOf({ title, headings }: Pick<FoundChunk, "title" | "headings">): string {
  return [title, ...headings].map(oneLine).join(" > ");
}

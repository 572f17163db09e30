import { countNewlines } from "../../lib/count-newlines.ts";
import { oneLine } from "../../lib/one-line.ts";
import type { Location } from "../../wire/location.ts";
import type { NumberRange } from "../../wire/primitives.ts";
import { locationsWithin, type StoredLocation } from "../store/locations.ts";
import type { Chunk } from "../store/chunks.ts";
import type { FoundChunk } from "../store/search-index.ts";

/** The position of a text in the content of its resource, and in the source file. */
export interface Position {
  /** UTF-16 offsets, end exclusive. */
  readonly start: number;
  readonly end: number;
  readonly lines: NumberRange;
  /** The pages of `locations`, unless they are pages of an attachment. */
  readonly pages?: NumberRange;
  readonly locations?: Location[];
}

/**
 * Returns the position of the text from `start` to `end`, which lies within the chunk. Default: all of the chunk but what it
 * repeats. Lines end with a line feed, which belongs to the line. Pure.
 */
export function positionOf(
  chunk: Pick<Chunk, "start" | "end" | "before" | "text" | "line" | "locations">,
  { start, end }: Pick<Position, "start" | "end"> = chunk,
): Position {
  const { before = "", text, line } = chunk;
  const lineAt = (offset: number): number =>
    line + countNewlines(text, before.length, before.length + offset - chunk.start);
  const locations = joinedLocations(locationsWithin(chunk.locations, start, end), { start, end }, lineAt);
  const [first] = locations;
  return {
    start,
    end,
    lines: { first: lineAt(start), last: lineAt(end - 1) },
    ...(first?.pages !== undefined && first.part === undefined && { pages: first.pages }),
    ...(locations.length > 0 && { locations }),
  };
}

/** Returns the locations of a text in order. Neighbours in the same part and sheet are one. */
function joinedLocations(
  starts: readonly StoredLocation[],
  { start, end }: Pick<Position, "start" | "end">,
  lineAt: (offset: number) => number,
): Location[] {
  const locations: Location[] = [];
  for (const [at, location] of starts.entries()) {
    const from = Math.max(start, location.start);
    const to = Math.min(end, starts[at + 1]?.start ?? end);
    const here = locationOf(location, lineAt(from), lineAt(to - 1));
    const last = locations.at(-1);
    if (last !== undefined && last.part === here.part && last.sheet === here.sheet)
      locations[locations.length - 1] = joined(last, here);
    else if (Object.keys(here).length > 0) locations.push(here);
  }
  return locations;
}

/** Returns the location of the lines from `first` to `last`. */
function locationOf(
  { part, page, slide, sheet, rows, line }: StoredLocation,
  first: number,
  last: number,
): Location {
  const rowAt = (at: number): number => Math.min((rows?.first ?? 0) + at - (line ?? 0), rows?.last ?? 0);
  return {
    ...(part !== undefined && { part }),
    ...(page !== undefined && { pages: { first: page, last: page } }),
    ...(slide !== undefined && { slides: { first: slide, last: slide } }),
    ...(sheet !== undefined && { sheet }),
    ...(rows !== undefined && { rows: { first: rowAt(first), last: rowAt(last) } }),
  };
}

function joined(a: Location, b: Location): Location {
  const range = (one: NumberRange | undefined, two: NumberRange | undefined): NumberRange | undefined =>
    one === undefined || two === undefined ? (one ?? two) : { first: one.first, last: two.last };
  const [pages, slides, rows] = [range(a.pages, b.pages), range(a.slides, b.slides), range(a.rows, b.rows)];
  return { ...a, ...(pages && { pages }), ...(slides && { slides }), ...(rows && { rows }) };
}

/** Returns the title and the headings of a chunk in one line. Pure. */
export function pathOf({ title, headings }: Pick<FoundChunk, "title" | "headings">): string {
  return [title, ...headings].map(oneLine).join(" > ");
}

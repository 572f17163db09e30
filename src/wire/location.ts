import { z } from "zod";
import { LOCATIONS_MAX } from "./constants.ts";
import { Count, NumberRange } from "./primitives.ts";

/** Longest name of a sheet or part. */
const NAME_CHARS_MAX = 1000;

const name = z.string().min(1).max(NAME_CHARS_MAX);
const partName = name.describe("message: the text of an e-mail itself; otherwise the name of an attachment.");
const number = z.int().min(1);

/** Where a part of a content begins, and where the source file has it (an addition). */
const LocationStart = z
  .object({
    start: Count.describe("UTF-16 offset into content."),
    part: partName.optional(),
    page: number.optional(),
    slide: number.optional(),
    sheet: name.optional(),
    rows: NumberRange.refine(({ first, last }) => first <= last, {
      message: "expected first to be at most last",
    })
      .optional()
      .describe("Each line is the next row; further lines are the last row."),
  })
  .meta({ id: "LocationStart", description: "Its fields hold up to the next start." });

/** The locations of a content, ascending. */
export const LocationStarts = z
  .array(LocationStart)
  .max(LOCATIONS_MAX)
  .refine((all) => all.every(({ start }, at) => at === 0 || start > (all[at - 1]?.start ?? 0)), {
    message: "expected each start to be greater than the one before",
  });
export type LocationStarts = z.infer<typeof LocationStarts>;

/** Where the source file has a text (an addition). */
export const Location = z
  .object({
    part: partName.optional(),
    pages: NumberRange.optional(),
    slides: NumberRange.optional(),
    sheet: name.optional(),
    rows: NumberRange.optional(),
  })
  .meta({ id: "Location", description: "In the file from which the text was extracted." });
export type Location = z.infer<typeof Location>;

/** Most locations that are named for a person. */
const PLACES_NAMED = 3;

/** Names locations for a person: `sheet "Q1", rows 12–30`. */
export function locationWords(locations: readonly Location[]): string {
  const named = locations
    .slice(0, PLACES_NAMED)
    .map(({ part, sheet, pages, slides, rows }) =>
      [
        ...(part === undefined ? [] : [part]),
        ...(sheet === undefined ? [] : [`sheet "${sheet}"`]),
        ...[rangeWords("page", pages), rangeWords("slide", slides), rangeWords("row", rows)].flat(),
      ].join(", "),
    );
  return [...named, ...(locations.length > PLACES_NAMED ? ["…"] : [])].join("; ");
}

/** Names a range of pages, lines and the like; none for no range. */
export function rangeWords(unit: string, range: NumberRange | undefined): string[] {
  if (range === undefined) return [];
  const { first, last } = range;
  return [first === last ? `${unit} ${first}` : `${unit}s ${first}–${last}`];
}

import { oneLine } from "../../lib/one-line.ts";

/**
 * Where a part of a text begins, and where the source file has it. The fields hold up to the next start. Without fields: the
 * text from here on is at no location of the file.
 */
export interface LocationStart {
  /** UTF-16 offset in the text. */
  readonly start: number;
  /** Part of an e-mail: `message`, or the name of an attachment; `a.eml/b.pdf` is attached to an attached e-mail. */
  readonly part?: string | undefined;
  /** From 1, of a PDF or an image. */
  readonly page?: number | undefined;
  /** From 1. */
  readonly slide?: number | undefined;
  /** Name of a sheet of a workbook. */
  readonly sheet?: string | undefined;
  /** Rows of a sheet or table, from 1, both included. Each line of the text is the next row; further lines are the last row. */
  readonly rows?: { readonly first: number; readonly last: number } | undefined;
}

/** A text, and where the source file has its parts. */
export interface LocatedText {
  readonly text: string;
  /** Ascending. Text before the first start is at no location of the file. Default: unknown. */
  readonly locations?: readonly LocationStart[] | undefined;
}

/** Separator of pages, sheets, slides and parts: the boundary that every chunker prefers. */
const PART_BREAK = "\n\n";

/** Joins the non-empty texts by blank lines. The blank line after a text belongs to it. */
export function joinLocated(texts: readonly LocatedText[]): LocatedText {
  const locations: LocationStart[] = [];
  const parts: string[] = [];
  let end = 0;
  for (const { text, locations: own } of texts) {
    if (text === "") continue;
    const begin = parts.length === 0 ? 0 : end + PART_BREAK.length;
    for (const location of own ?? (locations.length === 0 ? [] : [{ start: 0 }]))
      locations.push({ ...location, start: begin + location.start });
    parts.push(text);
    end = begin + text.length;
  }
  return { text: parts.join(PART_BREAK), ...(locations.length > 0 && { locations }) };
}

/** Locates a whole text at one location. */
export function locatedAt(text: string, location: Omit<LocationStart, "start">): LocatedText {
  return { text, locations: [{ start: 0, ...location }] };
}

/** Removes the white space around a text. */
export function trimLocated({ text, locations }: LocatedText): LocatedText {
  const trimmed = text.trim();
  const cut = text.length - text.trimStart().length;
  if (locations === undefined || cut === 0) return { text: trimmed, locations };
  return {
    text: trimmed,
    locations: locations.map((location) => ({ ...location, start: Math.max(0, location.start - cut) })),
  };
}

/** A line of a text that stands for a row of a table. */
export interface RowLine {
  readonly text: string;
  /** From 1, as a spreadsheet counts. */
  readonly row: number;
}

/** Most runs of consecutive rows of one table. The rows of a table with more gaps are not located. */
const RUNS_MAX = 1000;

/** Joins the lines of a table by line feeds. */
export function joinRows(
  lines: readonly RowLine[],
  location: Pick<LocationStart, "sheet"> = {},
): LocatedText {
  const runs: { start: number; rows: { first: number; last: number } }[] = [];
  let start = 0;
  let isOpen = false;
  for (const { text, row } of lines) {
    const run = runs.at(-1)?.rows;
    if (row === run?.last) isOpen = false;
    else if (isOpen && row - 1 === run?.last) run.last = row;
    else {
      runs.push({ start, rows: { first: row, last: row } });
      isOpen = true;
    }
    start += text.length + 1;
  }
  const text = lines.map((line) => line.text).join("\n");
  return {
    text,
    locations:
      runs.length > RUNS_MAX ? [{ start: 0, ...location }] : runs.map((run) => Object.assign(run, location)),
  };
}

/** Longest name of a part or sheet. */
const NAME_CHARS_MAX = 200;

/** Makes the name of a part or sheet one short line. */
export function locationName(name: string): string {
  return oneLine(name).slice(0, NAME_CHARS_MAX).toWellFormed();
}

import { oneLine } from "../../lib/one-line.ts";
import { namesColumns } from "./column-names.ts";
import { joinRows, type LocatedText } from "./located-text.ts";

/** Fewest rows below the head of a table; two lines with a comma each are a coincidence. */
const ROWS_MIN = 2;
const COLUMNS_MAX = 100;
/** Largest growth of the text by repeating column names in each row. */
const GROWTH_MAX = 4;

/** Table format, as declared by media type or extension. */
export type TableKind = "csv" | "tsv";

/**
 * Writes a declared table with one line per row: `Item: Bolt; Price: 1.5`. Omits empty cells. Undefined if the table has to
 * stay as it is: its rows differ in length, nothing shows that the first row names the columns (see `namesColumns`), or
 * the names are so long that the text would exceed `GROWTH_MAX`.
 */
export function recordLines(text: string, kind: TableKind): LocatedText | undefined {
  const end = firstLineEnd(text);
  const separators = kind === "tsv" ? ["\t"] : ["\t", ";", ","];
  const separator = separators.find((sign) => isBefore(text.indexOf(sign), end));
  if (separator === undefined) return undefined;
  const [first, ...body] = parseRows(text, separator) ?? [];
  const head = first?.cells ?? [];
  if (body.length < ROWS_MIN || head.length < 2) return undefined;
  if (
    !namesColumns(
      head,
      body.map(({ cells }) => cells),
    )
  )
    return undefined;
  const lines = body.map(({ row, cells }) => ({
    row,
    text: cells
      .flatMap((cell, at) => (cell.trim() === "" ? [] : [`${head[at]?.trim()}: ${oneLine(cell)}`]))
      .join("; "),
  }));
  const written = joinRows(lines.filter((line) => line.text !== ""));
  return written.text.length > text.length * GROWTH_MAX ? undefined : written;
}

/** A row of a table. Blank lines count, so that `row` is the number that a spreadsheet shows, from 1. */
interface Row {
  readonly row: number;
  readonly cells: readonly string[];
}

function isBefore(found: number, end: number): boolean {
  return found !== -1 && found < end;
}

function firstLineEnd(text: string): number {
  const end = text.indexOf("\n");
  return end === -1 ? text.length : end;
}

/** Parses the rows (RFC 4180). Undefined if a row differs in its number of cells or has too many. */
function parseRows(text: string, separator: string): Row[] | undefined {
  const rows: Row[] = [];
  let cells: string[] = [];
  let row = 1;
  let at = text.startsWith("\uFEFF") ? 1 : 0;
  while (at < text.length) {
    const [cell, end] = text[at] === '"' ? quotedCell(text, at) : plainCell(text, at, separator);
    if (end === -1) return undefined;
    cells.push(cell);
    if (cells.length > COLUMNS_MAX) return undefined;
    if (text[end] === separator) {
      at = end + 1;
      if (at < text.length) continue;
      cells.push(""); // the file ends with a separator
    } else if (end < text.length && text[end] !== "\n" && !text.startsWith("\r\n", end)) return undefined;
    const isBlank = cells.length === 1 && cells[0] === "";
    if (!isBlank) {
      if (cells.length !== (rows[0]?.cells ?? cells).length) return undefined;
      rows.push({ row, cells });
    }
    cells = [];
    row += 1;
    at = text[end] === "\r" ? end + 2 : end + 1;
  }
  return rows;
}

/** Returns a cell and its end, at a separator, a line break or the end of the text. Reads no further: lines may be long. */
function plainCell(text: string, start: number, separator: string): [string, number] {
  let end = start;
  while (end < text.length && text[end] !== separator && text[end] !== "\n") end += 1;
  if (text[end] === "\n" && text[end - 1] === "\r" && end > start) end -= 1;
  return [text.slice(start, end), end];
}

function quotedCell(text: string, start: number): [string, number] {
  let end = start + 1;
  for (;;) {
    end = text.indexOf('"', end);
    if (end === -1) return ["", -1];
    if (text[end + 1] !== '"') break;
    end += 2;
  }
  return [text.slice(start + 1, end).replaceAll('""', '"'), end + 1];
}

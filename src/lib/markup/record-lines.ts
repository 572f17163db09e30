import { oneLine } from "../one-line.ts";
import { namesColumns } from "./column-names.ts";

/** Rows without the head that make a table; two lines with a comma each are a coincidence. */
const ROWS_MIN = 2;
const COLUMNS_MAX = 100;
/** Naming the columns in each row may make the text so many times as long. */
const GROWTH_MAX = 4;

/** What stands between the cells of a table, as its type or extension declares it. */
export type TableKind = "csv" | "tsv";

/**
 * Writes a declared table as one line a row: `Item: Bolt; Price: 1.5`. Empty cells are left out. Undefined where the cells
 * have to stay as they are: rows of different lengths, no evidence that the first row names the columns (see
 * `namesColumns`), or names so long that the text would grow beyond `GROWTH_MAX`.
 */
export function recordLines(text: string, kind: TableKind): string | undefined {
  const end = firstLineEnd(text);
  const separators = kind === "tsv" ? ["\t"] : ["\t", ";", ","];
  const separator = separators.find((sign) => isBefore(text.indexOf(sign), end));
  if (separator === undefined) return undefined;
  const rows = parseRows(text, separator);
  const [head = [], ...body] = rows ?? [];
  if (body.length < ROWS_MIN || head.length < 2 || !namesColumns(head, body)) return undefined;
  const lines = body.map((cells) =>
    cells
      .flatMap((cell, at) => (cell.trim() === "" ? [] : [`${head[at]?.trim()}: ${oneLine(cell)}`]))
      .join("; "),
  );
  const written = lines.filter((line) => line !== "").join("\n");
  return written.length > text.length * GROWTH_MAX ? undefined : written;
}

function isBefore(found: number, end: number): boolean {
  return found !== -1 && found < end;
}

function firstLineEnd(text: string): number {
  const end = text.indexOf("\n");
  return end === -1 ? text.length : end;
}

/** The rows (RFC 4180: quotes around cells, doubled within); undefined where one has another number of cells, or too many. */
function parseRows(text: string, separator: string): string[][] | undefined {
  const rows: string[][] = [];
  let row: string[] = [];
  let at = text.startsWith("\uFEFF") ? 1 : 0;
  while (at < text.length) {
    const [cell, end] = text[at] === '"' ? quotedCell(text, at) : plainCell(text, at, separator);
    if (end === -1) return undefined;
    row.push(cell);
    if (row.length > COLUMNS_MAX) return undefined;
    if (text[end] === separator) {
      at = end + 1;
      if (at < text.length) continue;
      row.push(""); // the file ends right behind a separator
    } else if (end < text.length && text[end] !== "\n" && !text.startsWith("\r\n", end)) return undefined;
    const isBlank = row.length === 1 && row[0] === "";
    if (!isBlank) {
      if (row.length !== (rows[0] ?? row).length) return undefined;
      rows.push(row);
    }
    row = [];
    at = text[end] === "\r" ? end + 2 : end + 1;
  }
  return rows;
}

/** The cell and where it ends: at a separator, a line's end or the text's. Looks no further, for a line may be long. */
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

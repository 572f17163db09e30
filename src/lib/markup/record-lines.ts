import { oneLine } from "../one-line.ts";

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

/** Rows that are compared with the first one: enough to see what a column holds. */
const SAMPLE_ROWS = 200;
/** Longest name of a column. */
const NAME_CHARS_MAX = 64;
/** Share of a column's cells that have to be alike: real tables have a gap or a note somewhere. */
const ALIKE = 0.95;
/** Rows from which values that recur are a pattern, and the share of different ones up to which they do. */
const RECURRING_ROWS_MIN = 6;
const RECURRING_SHARE = 1 / 3;

/**
 * Whether the first row of a table names its columns. Each of its cells has to be able to be a name: short, beginning with a
 * letter, unlike the others. And one column has to give evidence, for in a table of words any row looks like a row of
 * names: the cells below it are all numbers, dates, addresses or the like and the first one is not; few values recur below
 * and the first is none of them; or the first is written as only names of fields are (`first_name`, `orderId`). A name that
 * is also a value of its column is none.
 */
function namesColumns(head: readonly string[], body: readonly (readonly string[])[]): boolean {
  const names = head.map((name) => name.trim());
  if (!names.every(isName) || new Set(names).size !== names.length) return false;
  const rows = body.slice(0, SAMPLE_ROWS);
  const columns = names.map((name, at) => ({
    name,
    cells: rows.map((row) => (row[at] ?? "").trim()).filter((cell) => cell !== ""),
  }));
  if (columns.some(({ name, cells }) => cells.includes(name))) return false;
  return columns.some(({ name, cells }) => cells.length >= 2 && isUnlike(name, cells));
}

function isName(text: string): boolean {
  return text.length <= NAME_CHARS_MAX && /^\p{L}[^{}[\]<>="'`\n]*$/u.test(text);
}

function isUnlike(name: string, cells: readonly string[]): boolean {
  if (MARKS.some((mark) => !mark.test(name) && share(cells, (cell) => mark.test(cell)) >= ALIKE)) return true;
  if (isFieldName(name) && share(cells, isFieldName) < 1 - ALIKE) return true;
  return cells.length >= RECURRING_ROWS_MIN && new Set(cells).size <= cells.length * RECURRING_SHARE;
}

/** What the values of a column share and its name lacks: digits, an address of mail or of the web, truth values. */
const MARKS: readonly RegExp[] = [/\d/, /@/, /:\/\//, /^(?:true|false|yes|no|ja|nein)$/i];
/** Words joined without a space, as the fields of programs and data bases are named. */
const FIELD_NAME =
  /^(?:[a-z][a-z0-9]*(?:_[a-z0-9]+)+|[a-z][a-z0-9]*(?:[A-Z][a-z0-9]*)+|[A-Z]+(?:_[A-Z0-9]+)+)$/;

function isFieldName(text: string): boolean {
  return text.length <= NAME_CHARS_MAX && FIELD_NAME.test(text);
}

function share(cells: readonly string[], holds: (cell: string) => boolean): number {
  return cells.filter(holds).length / cells.length;
}

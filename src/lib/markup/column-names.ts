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
export function namesColumns(head: readonly string[], body: readonly (readonly string[])[]): boolean {
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

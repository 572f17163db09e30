/** Rows compared with the first one. */
const SAMPLE_ROWS = 200;
/** Longest name of a column. */
const NAME_CHARS_MAX = 64;
/** Largest chance that a row of values would differ from its column as the first row does. */
const CHANCE_MAX = 0.05;

/**
 * Whether the first row of a table names its columns. Each of its cells must be a possible name: short, unique, starting
 * with a letter. In a table of words any row meets that, so one column must give evidence: its values have types and the
 * name has another one (`isOtherType`), or they recur and the name is none of them (`isNewValue`), or the row consists of
 * field names (`first_name`, `orderId`). A name that is a value of its column, or has the type of its values, is a value.
 */
export function namesColumns(head: readonly string[], body: readonly (readonly string[])[]): boolean {
  const names = head.map((name) => name.trim());
  if (!names.every(isName) || new Set(names).size !== names.length) return false;
  const rows = body.slice(0, SAMPLE_ROWS);
  const columns = names.map((name, at) => ({
    name,
    cells: rows.map((row) => (row[at] ?? "").trim()).filter((cell) => cell !== "" && !isMissing(cell)),
  }));
  if (columns.some(({ name, cells }) => isValue(name, cells))) return false;
  const areFieldNames = names.every((name) => IDENTIFIER.test(name));
  return columns.some(
    ({ name, cells }) =>
      cells.length >= 2 &&
      (isOtherType(name, cells) || isNewValue(cells) || (areFieldNames && isFieldName(name, cells))),
  );
}

function isName(text: string): boolean {
  return text.length <= NAME_CHARS_MAX && /^\p{L}[^{}[\]<>="'`\n]*$/u.test(text) && !isMissing(text);
}

/** Whether a cell says that there is no value. */
function isMissing(cell: string): boolean {
  return /^(?:n\/?a|nan|none|null|nil|unknown|missing|tb[ad]|unbekannt|keine?r?|fehlt)$/i.test(cell);
}

function isValue(name: string, cells: readonly string[]): boolean {
  if (cells.includes(name)) return true;
  const type = typeOf(name);
  return (
    type !== undefined &&
    cells.length >= 2 &&
    isRare(
      count(cells, (cell) => typeOf(cell) !== type),
      cells,
    )
  );
}

/** Whether nearly all cells are numbers, codes or addresses, and nearly none has the type of the name. */
function isOtherType(name: string, cells: readonly string[]): boolean {
  const type = typeOf(name);
  return (
    isRare(
      count(cells, (cell) => typeOf(cell) === undefined),
      cells,
    ) &&
    isRare(
      count(cells, (cell) => typeOf(cell) === type),
      cells,
    )
  );
}

/**
 * Whether a value that is none of the cells would be a surprise. The chance that the next value is a new one is the share of
 * the values seen once (Good–Turing). Equal cells in a row count once, because a sorted table begins with a new value too.
 */
function isNewValue(cells: readonly string[]): boolean {
  const drawn = cells.filter((cell, at) => cell !== cells[at - 1]);
  const seen = new Map<string, number>();
  for (const cell of drawn) seen.set(cell, (seen.get(cell) ?? 0) + 1);
  const once = count([...seen.values()], (times) => times === 1);
  return (once + 1) / (drawn.length + 1) <= CHANCE_MAX;
}

/** Whether the name has the form of a field of a program or database, and the cells do not. */
function isFieldName(name: string, cells: readonly string[]): boolean {
  return (
    FIELD_NAME.test(name) &&
    isRare(
      count(cells, (cell) => IDENTIFIER.test(cell)),
      cells,
    )
  );
}

/** Types of values. A text that begins with a digit or an amount is a number: a date, a time, a measure, a telephone. */
const TYPES = {
  number: /^(?:\p{Lu}{3}\s)?\P{L}*\d/u,
  mail: /^[^\s@]+@[^\s@]+$/,
  link: /^[a-z][a-z+.-]*:\/\/\S+$/i,
  code: /^(?=\D*\d)\S+$/,
} as const;

/** Returns the type of a value; undefined: words. */
function typeOf(text: string): string | undefined {
  return Object.entries(TYPES).find(([, form]) => form.test(text))?.[0];
}

const IDENTIFIER = /^(?:[a-z][A-Za-z0-9_]*|[A-Z][A-Z0-9_]*)$/;
/** Words joined without a space. */
const FIELD_NAME =
  /^(?:[a-z][a-z0-9]*(?:_[a-z0-9]+)+|[a-z][a-z0-9]*(?:[A-Z][a-z0-9]*)+|[A-Z]+(?:_[A-Z0-9]+)+)$/;

/** Whether cells are exceptions in their column: none, or so few that another one would be a surprise. */
function isRare(exceptions: number, cells: readonly unknown[]): boolean {
  return exceptions === 0 || (exceptions + 1) / (cells.length + 1) <= CHANCE_MAX;
}

function count<T>(items: readonly T[], holds: (item: T) => boolean): number {
  return items.filter(holds).length;
}

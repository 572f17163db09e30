/**
 * Transactions that are written once for both databases: a generator yields statements and gets their results. SQLite runs it in the
 * thread of the writer without a pause, PostgreSQL on a connection.
 */

/** The values of a statement's parameters, by name (`@accountId`). */
export type Parameters = Readonly<Record<string, unknown>>;

export interface Statement {
  readonly text: string;
  readonly parameters: Parameters;
  /** Whether its result are rows, with the names of the selected columns, or how many rows it changed. */
  readonly returns: "rows" | "changes";
}

export type Result = readonly unknown[] | number;

/** Statements that are yielded together need no result of each other. They run in their order. */
export type Steps<T> = Generator<readonly Statement[], T, readonly Result[]>;

/** Returns the first row of a statement. */
export function* get<Row>(text: string, parameters: Parameters = {}): Steps<Row | undefined> {
  const [row] = yield* each<Row>(text, [parameters]);
  return row;
}

/** Returns how many rows a statement changed. */
export function* run(text: string, parameters: Parameters = {}): Steps<number> {
  const [changes] = yield [{ text, parameters, returns: "changes" }];
  return typeof changes === "number" ? changes : 0;
}

/** Runs one statement for each of several sets of parameters. Returns the rows of all. */
export function* each<Row>(text: string, sets: readonly Parameters[]): Steps<Row[]> {
  if (sets.length === 0) return [];
  const results = yield sets.map((parameters) => ({ text, parameters, returns: "rows" }) as const);
  return results.flatMap((rows) => rows as Row[]); // the caller names the type of the rows that its statement selects
}

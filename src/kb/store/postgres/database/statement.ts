/** The values of a statement's parameters, by name. */
export type Parameters = Readonly<Record<string, unknown>>;

/** A statement with numbered parameters, as the protocol has them. */
interface Numbered {
  readonly text: string;
  /** The name of each parameter, in the order of their numbers. */
  readonly names: readonly string[];
}

/** Statements are constants of the program, so their number is bounded. */
const known = new Map<string, Numbered>();

/**
 * Replaces the named parameters of a statement (`@accountId`), which are spelled as in the statements for SQLite, by numbers.
 * A name that occurs again has one number.
 */
export function numbered(statement: string): Numbered {
  const before = known.get(statement);
  if (before !== undefined) return before;
  const names: string[] = [];
  const text = statement.replaceAll(/@([a-zA-Z]\w*)/g, (_, name: string) => {
    if (!names.includes(name)) names.push(name);
    return `$${names.indexOf(name) + 1}`;
  });
  const made = { text, names };
  known.set(statement, made);
  return made;
}

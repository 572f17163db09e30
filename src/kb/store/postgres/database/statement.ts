/** A statement with numbered parameters, as the protocol has them. */
interface Numbered {
  readonly text: string;
  /** The name of each parameter, in the order of their numbers. */
  readonly names: readonly string[];
}

/** Statements whose numbers are remembered. Most are constants of the program; those of filters have many shapes. */
const KNOWN_MAX = 2000;
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
  if (known.size >= KNOWN_MAX) known.clear();
  known.set(statement, made);
  return made;
}

/** What fills `{{name}}`. */
export type Variables = Readonly<Record<string, string | number | boolean>>;

/** A text with its variables filled in. */
export interface Filled {
  readonly text: string;
  /** Names that stand in the text and have no value, each once; there they are left as written. */
  readonly missing: readonly string[];
}

const PLACE = /\{\{\s*([^{}\n]{1,200}?)\s*\}\}/g;

/** Fills in each `{{name}}`, once: what a value itself holds is text. Pure. */
export function fillVariables(text: string, variables: Variables): Filled {
  const missing = new Set<string>();
  const filled = text.replaceAll(PLACE, (written, name: string) => {
    // An own key: a variable may be called `constructor`.
    if (Object.hasOwn(variables, name)) return String(variables[name]);
    missing.add(name);
    return written;
  });
  return { text: filled.toWellFormed(), missing: [...missing] };
}

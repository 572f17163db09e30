/** What fills `{{name}}`. */
export type Variables = Readonly<Record<string, string | number | boolean>>;

/** A text with its variables filled in. */
export interface Filled {
  readonly text: string;
  /** Names that stand in the text and have no value, each once; there they are left as written. */
  readonly missing: readonly string[];
}

/** Spaces are part of the match and trimmed later: a pattern that skips them tries every split of a long row of them. */
const PLACE = /\{\{([^{}\n]{1,200})\}\}/g;

/**
 * Fills in each `{{name}}`, once: what a value itself holds is text. Undefined: filled in, the text has more than
 * `charsMax` characters; then it is not made. Pure.
 */
export function fillVariables(text: string, variables: Variables, charsMax: number): Filled | undefined {
  const missing = new Set<string>();
  let chars = text.length;
  const filled = text.replaceAll(PLACE, (written, spaced: string) => {
    const name = spaced.trim();
    if (name === "" || chars > charsMax) return written;
    // An own key: a variable may be called `constructor`.
    if (!Object.hasOwn(variables, name)) {
      missing.add(name);
      return written;
    }
    const value = String(variables[name]);
    chars += value.length - written.length;
    return chars > charsMax ? written : value;
  });
  return chars > charsMax ? undefined : { text: filled.toWellFormed(), missing: [...missing] };
}

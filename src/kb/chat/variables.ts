import type { ChatBody } from "../../wire/chat.ts";
import { Refusal } from "../resources/refusal.ts";

/** Fills in the variables of a request. Throws `text_too_large` if the result exceeds the limit on the text itself. */
export function fill(text: string, { variables = {} }: ChatBody, charsMax: number): Filled {
  const filled = fillVariables(text, variables, charsMax);
  if (filled !== undefined) return filled;
  throw new Refusal(
    "text_too_large",
    `variables: with them filled in, the text has more than ${charsMax} characters.`,
    { field: "variables", hint: "Send shorter values, or use them less often." },
  );
}

/** The values of `{{name}}`. */
type Variables = Readonly<Record<string, string | number | boolean>>;

/** A text with its variables filled in. */
interface Filled {
  readonly text: string;
  /** Names in the text without a value, each once. The text keeps them as written. */
  readonly missing: readonly string[];
}

/** Matches spaces and trims them later: a pattern that skips them would backtrack over many spaces. */
const VARIABLE = /\{\{([^{}\n]{1,200})\}\}/g;

/**
 * Fills in each `{{name}}` once; a value is not searched for variables. Undefined: the result would exceed `charsMax` characters.
 * Pure.
 */
export function fillVariables(text: string, variables: Variables, charsMax: number): Filled | undefined {
  const missing = new Set<string>();
  let chars = text.length;
  const replaced = text.replaceAll(VARIABLE, (written, spaced: string) => {
    const name = spaced.trim();
    if (name === "" || chars > charsMax) return written;
    // Checks own keys, because a variable may be called `constructor`.
    if (!Object.hasOwn(variables, name)) {
      missing.add(name);
      return written;
    }
    const value = String(variables[name]);
    chars += value.length - written.length;
    return chars > charsMax ? written : value;
  });
  return chars > charsMax ? undefined : { text: replaced.toWellFormed(), missing: [...missing] };
}

import type { z } from "zod";

/** A problem that a schema found: its path, and a sentence with the expected and the actual value. */
export interface SchemaProblem {
  /** JSON path such as `sources[0].settings.chunkSize`; empty for the whole value. */
  readonly path: string;
  /** The parts of the path. */
  readonly parts: readonly PropertyKey[];
  /** `expected …, got …`. */
  readonly message: string;
}

/** Longest part of the refused value that a message quotes, in characters. */
const SHOWN_CHARS_MAX = 60;

/** Returns all problems of a failed parse of `value`, in the schema's order. */
export function schemaProblems(error: z.ZodError, value: unknown): SchemaProblem[] {
  return error.issues.flatMap((issue) => problemsOf(issue, value));
}

function problemsOf(issue: z.core.$ZodIssue, value: unknown): SchemaProblem[] {
  if (issue.code === "unrecognized_keys") {
    return issue.keys.map((key) => problemAt([...issue.path, key], "unknown key"));
  }
  if (issue.code === "invalid_union") {
    const branch = closestBranch(issue.errors);
    return branch.flatMap((inner) => problemsOf({ ...inner, path: [...issue.path, ...inner.path] }, value));
  }
  const came = valueAt(value, issue.path);
  const expected = issue.message
    .replace(/^(Invalid input|Invalid option|Too big|Too small): /, "")
    .replace(/, received \w+$/, "");
  const message = came === undefined ? `missing, ${expected}` : `${expected}, got ${shown(came)}`;
  return [problemAt(issue.path, message)];
}

function problemAt(parts: readonly PropertyKey[], message: string): SchemaProblem {
  return { path: jsonPath(parts), parts, message };
}

/** Returns the problems of the union member closest to the value: fewest unknown keys, then fewest problems. */
function closestBranch(branches: readonly (readonly z.core.$ZodIssue[])[]): readonly z.core.$ZodIssue[] {
  const unknownKeys = (issues: readonly z.core.$ZodIssue[]): number =>
    issues.reduce((sum, issue) => sum + (issue.code === "unrecognized_keys" ? issue.keys.length : 0), 0);
  const ranked = branches.toSorted((a, b) => unknownKeys(a) - unknownKeys(b) || a.length - b.length);
  return ranked[0] ?? [];
}

/** `["a", 0, "b"]` → `a[0].b`. */
export function jsonPath(parts: readonly PropertyKey[]): string {
  let path = "";
  for (const part of parts) {
    if (typeof part === "number") path += `[${part}]`;
    else path += path === "" ? String(part) : `.${String(part)}`;
  }
  return path;
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  let at = value;
  for (const part of path) {
    if (typeof at !== "object" || at === null) return undefined;
    at = Reflect.get(at, part);
  }
  return at;
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length <= SHOWN_CHARS_MAX ? text : `${text.slice(0, SHOWN_CHARS_MAX)}…`;
}

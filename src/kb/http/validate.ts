import type { z } from "zod";
import { withoutStacks } from "../../lib/failure.ts";
import { Refusal, shown } from "../resources/refusal.ts";

/** Checks what came against a wire schema. Throws a refusal that names the first field at fault, what was expected and what came. */
export function readInput<S extends z.ZodType>(schema: S, input: unknown): z.output<S> {
  return withoutStacks(() => {
    const result = schema.safeParse(input);
    if (result.success) return result.data;
    throw refusalOf(result.error.issues[0], input);
  });
}

/** Checks the body of a request, which must be a JSON object. */
export function readBody<S extends z.ZodType>(schema: S, body: unknown): z.output<S> {
  return withoutStacks(() => {
    if (typeof body !== "object" || body === null || Array.isArray(body)) {
      throw new Refusal("invalid_body", `The body: expected a JSON object, got ${came(body)}.`);
    }
    return readInput(schema, body);
  });
}

type Issue = z.core.$ZodIssue;

function refusalOf(issue: Issue | undefined, input: unknown): Refusal {
  if (issue === undefined) return new Refusal("invalid_body", "The body is not what this operation takes.");
  const field = jsonPath(issue.path);
  const value = valueAt(input, issue.path);
  const message = `${field}: expected ${expected(issue)}, got ${isEmptyList(value) ? "an empty array" : came(value)}`;
  return new Refusal("invalid_field", message, { field });
}

/** `settings.chunkSize`, `user_urls[0].url`. */
function jsonPath(path: readonly PropertyKey[]): string {
  let text = "";
  for (const step of path) {
    if (typeof step === "number") text += `[${step}]`;
    else text += text === "" ? String(step) : `.${String(step)}`;
  }
  return text;
}

/** What the schema wanted, as the end of a sentence that begins with "expected". */
function expected(issue: Issue): string {
  switch (issue.code) {
    case "invalid_type":
      return TYPE_WORDS[issue.expected] ?? issue.expected;
    case "invalid_value":
      return oneOf(issue.values.map((value) => shown(String(value))));
    case "too_small":
      return bound(issue.origin, issue.inclusive === false ? "more than" : "at least", issue.minimum);
    case "too_big":
      return bound(issue.origin, issue.inclusive === false ? "less than" : "at most", issue.maximum);
    case "invalid_union":
      return "an integer"; // the wire's only union is an integer or its digits
    case "custom":
    case "invalid_element":
    case "invalid_format":
    case "invalid_key":
    case "not_multiple_of":
    case "unrecognized_keys":
      return issue.message.replace(/^expected /, "");
  }
}

/** `a`, `a or b`, `a, b or c`. */
export function oneOf(words: readonly string[]): string {
  const last = words.at(-1) ?? "nothing";
  return words.length < 2 ? last : `${words.slice(0, -1).join(", ")} or ${last}`;
}

const TYPE_WORDS: Readonly<Record<string, string>> = {
  int: "an integer",
  string: "a string",
  number: "a number",
  object: "an object",
  array: "an array",
  boolean: "true or false",
};

function bound(origin: string, relation: string, limit: number | bigint): string {
  if (origin !== "string") return `${relation} ${limit}`;
  return limit === 1 && relation === "at least"
    ? "a text that is not empty"
    : `${relation} ${limit} characters`;
}

function valueAt(input: unknown, path: readonly PropertyKey[]): unknown {
  let value = input;
  for (const step of path) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, step)) return undefined;
    value = (value as Record<PropertyKey, unknown>)[step]; // an object that has this key, as just checked
  }
  return value;
}

function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}

/** What came, short enough for a message whatever it was. */
function came(value: unknown): string {
  if (value === undefined) return "nothing";
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  if (typeof value === "object") return "an object";
  if (typeof value !== "string") return JSON.stringify(value);
  return value.length > 60 ? `${value.length} characters` : shown(value);
}

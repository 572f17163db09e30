import type { z } from "zod";
import { withoutStacks } from "../../../lib/failure.ts";
import { PATH_CHARS_MAX } from "../../../wire/filter.ts";
import { Refusal, shown } from "../../resources/refusal.ts";

/** Checks input against a wire schema. Throws a refusal with the first invalid field, the expected and the received value. */
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
      throw new Refusal("invalid_body", `The body: expected a JSON object, got ${received(body)}.`);
    }
    return readInput(schema, body);
  });
}

type Issue = z.core.$ZodIssue;

function refusalOf(issue: Issue | undefined, input: unknown): Refusal {
  if (issue === undefined) return new Refusal("invalid_body", "The body is invalid for this operation.");
  const path = issue.code === "unrecognized_keys" ? [...issue.path, ...issue.keys.slice(0, 1)] : issue.path;
  const field = jsonPath(path);
  const value = valueAt(input, path);
  const message = `${field}: expected ${expected(issue)}, got ${isEmptyList(value) ? "an empty array" : received(value)}`;
  return new Refusal("invalid_field", message, { field });
}

/** Formats a path: `settings.chunkSize`, `user_urls[0].url`. Shortens long names, which a body may make up. */
function jsonPath(path: readonly PropertyKey[]): string {
  let text = "";
  for (const step of path) {
    if (typeof step === "number") {
      text += `[${step}]`;
      continue;
    }
    const name = String(step);
    const shortened = name.length > PATH_CHARS_MAX ? `${name.slice(0, PATH_CHARS_MAX)}…` : name;
    text += text === "" ? shortened : `.${shortened}`;
  }
  return text;
}

/** Describes what the schema expects, to follow the word "expected". */
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
    case "unrecognized_keys":
      return "no field of this name";
    case "custom":
    case "invalid_element":
    case "invalid_format":
    case "invalid_key":
    case "not_multiple_of":
      return issue.message.replace(/^expected /, "");
  }
}

/** Joins words: `a`, `a or b`, `a, b or c`. */
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

/** Describes a received value in few characters. */
function received(value: unknown): string {
  if (value === undefined) return "nothing";
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  if (typeof value === "object") return "an object";
  if (typeof value !== "string") return JSON.stringify(value);
  return value.length > 60 ? `${value.length} characters` : shown(value);
}

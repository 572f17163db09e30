import assert from "node:assert/strict";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";

/** The API document as far as answers are declared by it. */
export interface DeclaredApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, DeclaredOperation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, object>> };
}

interface DeclaredOperation {
  readonly responses: Readonly<Record<string, DeclaredResponse>>;
}

interface DeclaredResponse {
  readonly content?: Readonly<Record<string, DeclaredBody>>;
}

interface DeclaredBody {
  readonly schema: object;
  readonly "x-events"?: Readonly<Record<string, object>>;
}

/** An answer with its request. */
export interface CheckedAnswer {
  readonly method: string;
  /** Path or address. */
  readonly path: string;
  readonly status: number;
  readonly contentType: string;
  readonly text: string;
}

/**
 * Checks answers against the API document as if no answer might have a field that the document does not name: an undeclared
 * status, type or field fails, and so does a missing one.
 */
export function openAnswerCheck({ paths, components }: DeclaredApi): (answer: CheckedAnswer) => void {
  const ajv = new Ajv2020({
    strict: true,
    strictTypes: false,
    strictRequired: false,
    validateFormats: false,
  });
  for (const [name, schema] of Object.entries(components.schemas)) ajv.addSchema(closed(schema), name);
  const compiled = new WeakMap<object, ValidateFunction>();
  const operations = Object.entries(paths)
    .map(([path, methods]) => ({ segments: path.split("/"), methods }))
    // Literal segments go before parameters.
    .toSorted((a, b) => parameterCount(a.segments) - parameterCount(b.segments));

  const valid = (schema: object, value: unknown): void => {
    const validate = compiled.get(schema) ?? ajv.compile(closed(schema));
    compiled.set(schema, validate);
    assert(validate(value), ajv.errorsText(validate.errors, { dataVar: "the answer" }));
  };
  const bodyOf = ({ method, path, status, contentType }: CheckedAnswer): DeclaredBody | undefined => {
    const segments = new URL(path, "http://localhost").pathname.split("/");
    const operation = operations.find((one) => matches(one.segments, segments))?.methods[
      method === "HEAD" ? "get" : method.toLowerCase()
    ];
    if (operation === undefined) {
      assert(status >= 400, `nothing at this address answers ${status}`);
      return REFUSED;
    }
    const response = operation.responses[status] ?? operation.responses[`${Math.floor(status / 100)}XX`];
    assert(response !== undefined, `the status ${status} is not declared`);
    if (response.content === undefined) return undefined;
    const body = response.content[contentType] ?? response.content["*/*"];
    assert(
      body !== undefined,
      `${contentType} is not declared, only ${Object.keys(response.content).join()}`,
    );
    return body;
  };

  return (answer) => {
    try {
      const body = bodyOf(answer);
      if (body === undefined || answer.method === "HEAD") assert.equal(answer.text, "", "expected no body");
      else for (const [schema, value] of partsOf(body, answer)) valid(schema, value);
    } catch (cause) {
      const shown = `${answer.method} ${answer.path}: ${answer.status} ${answer.text.slice(0, 2000)}`;
      throw new Error(`${(cause as Error).message}, in the answer to ${shown}`, { cause });
    }
  };
}

/** The media type that the headers of an answer name. */
export function typeOf(headers: Readonly<Record<string, string | string[] | undefined>>): string {
  return String(headers["content-type"] ?? "").replace(/;.*/, "");
}

const REFUSED: DeclaredBody = { schema: { $ref: "#/components/schemas/Failure" } };

/** What an answer consists of, each part with its schema. */
function* partsOf(
  { schema, "x-events": events }: DeclaredBody,
  { contentType, text }: CheckedAnswer,
): Generator<readonly [object, unknown]> {
  if (contentType === "application/json") yield [schema, JSON.parse(text)];
  if (contentType === "application/x-ndjson") {
    for (const line of text.split("\n").filter((one) => one !== "")) yield [schema, JSON.parse(line)];
  }
  if (contentType === "text/event-stream") {
    for (const [, event = "", data = ""] of text.matchAll(/^event: (.*)\ndata: (.*)\n\n/gm)) {
      const declared = events?.[event];
      assert(declared !== undefined, `the event ${event} is not declared`);
      yield [declared, JSON.parse(data)];
    }
  }
}

/** With no further fields in any object that names its own, and with references as the validator knows them. */
function closed(schema: object): object {
  const text = JSON.stringify(schema, (_key, value: unknown) => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
    const { $ref, ...rest } = value as { readonly $ref?: unknown };
    const pointed = typeof $ref === "string" ? { ...rest, $ref: $ref.replace(/^.*\//, "") } : value;
    const isOpen = "type" in value && value.type === "object" && "properties" in value;
    return isOpen ? { additionalProperties: false, ...pointed } : pointed;
  });
  return JSON.parse(text) as object; // an object, as it was
}

function parameterCount(segments: readonly string[]): number {
  return segments.filter(isParameter).length;
}

function matches(pattern: readonly string[], path: readonly string[]): boolean {
  return (
    pattern.length === path.length &&
    pattern.every((segment, at) => (isParameter(segment) ? path[at] !== "" : segment === path[at]))
  );
}

function isParameter(segment: string): boolean {
  return segment.startsWith("{");
}

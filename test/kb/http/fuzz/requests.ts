import * as fc from "fast-check";
import { anyCharacter } from "../../../any-character.ts";

/** The parts of JSON Schema that the document uses. */
interface Schema {
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly $ref?: string;
}

interface Parameter {
  readonly name: string;
  readonly in: "path" | "query" | "header";
  readonly schema: Schema;
}

interface OperationDoc {
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Schema }>> };
}

/** The served document. */
export interface ApiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, OperationDoc>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

/** A request to send, with its final body. */
export interface FuzzRequest {
  readonly method: string;
  /** Path as in the document, with `{id}`. */
  readonly route: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Buffer | undefined;
}

/** Placeholders for existing ids and addresses, which are resolved when a request is sent: `@id0`, `@id1` … */
export const PLACEHOLDERS = ["@id0", "@id1", "@id2", "@collection", "@file", "@image", "@agent"] as const;

/** Requests to every operation of a document: valid, almost valid and wild ones. */
export function fuzzRequests({ paths, components }: ApiDocument): fc.Arbitrary<FuzzRequest> {
  // Inlines the named schemas: none of those for requests is recursive.
  const text = JSON.stringify(paths, (key, value: Schema | null) => {
    if (key === "responses") return undefined;
    return value?.$ref === undefined ? value : components.schemas[value.$ref.replace(/^.*\//, "")];
  });
  const whole = JSON.parse(text) as ApiDocument["paths"]; // the same, without references
  const operations = Object.entries(whole).flatMap(([route, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      // Weights operations by the size of their input.
      weight: operation.requestBody === undefined ? 1 : 3,
      arbitrary: requestTo(route, method.toUpperCase(), operation),
    })),
  );
  return fc.oneof({ weight: 20, arbitrary: fc.oneof(...operations) }, { weight: 1, arbitrary: strayRequest });
}

/** Strings of many kinds: from every Unicode plane, lone surrogates, long ones, hostile to paths, headers, SQL and search. */
const text = fc.oneof(
  fc.string({ unit: "grapheme" }),
  fc.string({ unit: anyCharacter }),
  fc.constantFrom(
    "",
    " ",
    "\0",
    "\ud800",
    "\u202e\u0000\ufeff",
    "__proto__",
    "constructor",
    "../../etc/passwd",
    "' OR 1=1 --",
    '"AND" NEAR(*',
    "a* OR b^2",
    "%00%2e%2e",
    "e\u0301".repeat(500),
    "👩‍👩‍👧‍👦".repeat(50),
    "x".repeat(9000),
    "word ".repeat(3000),
  ),
  fc.constantFrom(...PLACEHOLDERS),
);
const number = fc.oneof(
  fc.integer(),
  fc.double(),
  fc.constantFrom(0, -0, -1, 1, 2 ** 31, 2 ** 53, 1e300, -1e300, 0.1 + 0.2, 5e-324),
);
const wild: fc.Arbitrary<unknown> = fc.oneof(
  fc.jsonValue({ maxDepth: 4 }),
  text,
  number,
  fc.constantFrom(null, true, false, [], {}, [[]], { __proto__: null }, "1e3", "0x10", " 5 ", "-1"),
);
/** Unreachable addresses: no test may connect outside this machine. */
const address = fc.oneof(
  fc.constantFrom(
    "@file",
    "@image",
    "http://127.0.0.1:1/",
    "http://2130706433/",
    "http://[::ffff:127.0.0.1]/",
    "http://user:secret@10.0.0.1/",
    "https://nowhere.invalid/page",
    "http://a.invalid:99999/",
    "file:///etc/passwd",
    "http://",
    "javascript:alert(1)",
    "http://xn--/",
    `http://nowhere.invalid/${"a".repeat(8000)}`,
  ),
  text,
);

function valueOf(schema: Schema, name = ""): fc.Arbitrary<unknown> {
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
  if (schema.const !== undefined) return fc.constant(schema.const);
  if (schema.anyOf !== undefined) return fc.oneof(...schema.anyOf.map((branch) => valueOf(branch, name)));
  if (schema.properties !== undefined) return objectOf(schema);
  const [type = ""] = [schema.type ?? ""].flat();
  switch (type) {
    case "string":
      return stringOf(schema, name);
    case "integer":
      return fc.integer({ min: schema.minimum ?? 0, max: Math.min(schema.maximum ?? 1000, 10_000) });
    case "number":
      return fc.double({ min: schema.minimum ?? 0, max: schema.maximum ?? 1, noNaN: true });
    case "boolean":
      return fc.boolean();
    case "array":
      return fc.array(valueOf(schema.items ?? {}), { maxLength: 5 });
    case "null":
      return fc.constant(null);
    default:
      return wild;
  }
}

function stringOf({ pattern, minLength = 0, maxLength = 200 }: Schema, name: string): fc.Arbitrary<string> {
  if (name === "url") return address;
  if (name === "agent_id") return fc.constantFrom("@agent", "default");
  if (/collection/i.test(name)) return fc.constant("@collection");
  if (/(^|_)id$|Id$/.test(name)) return fc.constantFrom("@id0", "@id1", "@id2", "0".repeat(24));
  if (pattern?.startsWith("^\\d{1,") === true) return fc.nat({ max: 5000 }).map(String);
  const max = Math.min(maxLength, 400);
  return fc.oneof(
    fc.lorem({ maxCount: 12 }).map((words) => words.slice(0, max).padEnd(minLength, "x")),
    fc.string({ unit: "grapheme", minLength, maxLength: max }),
  );
}

/** Mostly as declared; sometimes with a missing, wild or unknown field. */
function objectOf({ properties = {}, required = [] }: Schema): fc.Arbitrary<Record<string, unknown>> {
  const fields = Object.entries(properties).map(([name, schema]) => {
    const value = fc.oneof({ weight: 25, arbitrary: valueOf(schema, name) }, { weight: 1, arbitrary: wild });
    const isRequired = required.includes(name);
    return fc
      .tuple(fc.nat({ max: isRequired ? 15 : 3 }), value)
      .map(([draw, drawn]): [string, unknown][] =>
        draw === 0 || (!isRequired && draw > 1) ? [] : [[name, drawn]],
      );
  });
  const stray = fc.oneof(
    { weight: 10, arbitrary: fc.constant([]) },
    { weight: 1, arbitrary: fc.tuple(text, wild).map((entry) => [entry]) },
  );
  const drawn = fc.tuple(...fields, stray).map((entries) => Object.fromEntries(entries.flat()));
  if (properties["url"] === undefined || properties["content"] === undefined) return drawn;
  // A document has either content or a url, which random choice would rarely produce.
  return fc
    .tuple(drawn, fc.nat({ max: 9 }), fc.lorem({ maxCount: 60 }), address)
    .map(([body, draw, words, url]) => {
      if (draw >= 8) return body;
      const [dropped, other, value] = draw < 5 ? ["url", "content", words] : ["content", "url", url];
      delete body[dropped];
      return Object.assign(body, { [other]: value });
    });
}

function requestTo(route: string, method: string, operation: OperationDoc): fc.Arbitrary<FuzzRequest> {
  const parameters = operation.parameters ?? [];
  const of = (place: Parameter["in"]): readonly Parameter[] => parameters.filter((one) => one.in === place);
  return fc
    .record({
      path: pathTo(route),
      query: queryOf(of("query")),
      headers: headersOf(of("header").map(({ name }) => name)),
      body: bodyOf(operation),
    })
    .map(({ path, query, headers, body }) => ({
      method,
      route,
      path: query === "" ? path : `${path}?${query}`,
      headers: { ...body.headers, ...headers },
      body: method === "GET" ? undefined : body.bytes,
    }));
}

function pathTo(route: string): fc.Arbitrary<string> {
  const segments = route.split("/").map((segment) =>
    segment.startsWith("{")
      ? fc.oneof(
          { weight: 3, arbitrary: fc.constantFrom("@id0", "@id1", "@id2") },
          {
            weight: 1,
            arbitrary: text.map((value) => encodeURIComponent(value.toWellFormed()).slice(0, 3000)),
          },
          { weight: 1, arbitrary: fc.constantFrom("%", "%zz", "%00", "..", ".", "%2f", "a;b=c", "~", "") },
        )
      : fc.constant(segment),
  );
  return fc.tuple(...segments).map((parts) => parts.join("/"));
}

function queryOf(parameters: readonly Parameter[]): fc.Arbitrary<string> {
  const one = ({ name, schema }: Parameter) =>
    fc
      .tuple(
        fc.nat({ max: 9 }),
        fc.oneof({ weight: 5, arbitrary: valueOf(schema, name) }, { weight: 1, arbitrary: text }),
      )
      .map(([draw, value]) =>
        draw === 0
          ? ""
          : `${name}=${encodeURIComponent(String(value).toWellFormed())}${draw === 1 ? `&${name}=x` : ""}`,
      );
  const stray = fc.oneof(
    { weight: 8, arbitrary: fc.constant("") },
    {
      weight: 1,
      arbitrary: fc.constantFrom(
        "%",
        "a=%zz",
        "&&&",
        "=",
        "limit[]=1",
        "a=1&a=2",
        "limit=-1",
        "x=".repeat(300),
      ),
    },
  );
  return fc
    .tuple(...parameters.map(one), stray)
    .map((parts) => parts.filter((part) => part !== "").join("&"));
}

/** Valid header values: visible ASCII and the upper half of Latin-1. */
const headerValue = fc.oneof(
  fc.string({
    unit: fc
      .integer({ min: 0x20, max: 0xff })
      .map((code) => (code === 0x7f ? " " : String.fromCharCode(code))),
    maxLength: 60,
  }),
  fc.constantFrom(
    "*",
    '"x"',
    'W/"x"',
    "respond-async",
    "bytes=0-",
    "bytes=9-1",
    "bytes=-0",
    "a".repeat(300),
    "0",
    "-1",
  ),
);

/** Half of the declared headers have meaningful values; the others have any valid value. */
function headersOf(declared: readonly string[]): fc.Arbitrary<Record<string, string>> {
  const meaning: Readonly<Record<string, readonly string[]>> = {
    prefer: ["respond-async"],
    range: ["bytes=0-1", "bytes=-1"],
    "idempotency-key": ["again", "again-and-again"],
  };
  const meant = fc.constantFrom(...declared, "accept").chain((name) => {
    const known = fc.constantFrom(...(meaning[name] ?? ["*", '"x"']));
    return fc.tuple(fc.constant(name), fc.oneof(known, headerValue));
  });
  const others = ["accept-encoding", "range", "if-range", "prefer", "origin", "x-forwarded-for", "cookie"];
  const stray = fc.tuple(fc.constantFrom(...others), headerValue);
  const key = fc.tuple(fc.constant("pauthkey"), headerValue);
  const header = fc.oneof(
    { weight: 12, arbitrary: meant },
    { weight: 6, arbitrary: stray },
    { weight: 1, arbitrary: key },
  );
  return fc.array(header, { maxLength: 3 }).map((entries) => Object.fromEntries(entries));
}

interface Body {
  readonly headers: Readonly<Record<string, string>>;
  readonly bytes: string | Buffer | undefined;
}

const JSON_HEADERS = { "content-type": "application/json" };

function bodyOf({ requestBody }: OperationDoc): fc.Arbitrary<Body> {
  const content = requestBody?.content ?? {};
  const json = content["application/json"];
  const lines = content["application/x-ndjson"];
  const sendJson = (arbitrary: fc.Arbitrary<unknown>): fc.Arbitrary<Body> =>
    arbitrary.map((value) => ({ headers: JSON_HEADERS, bytes: JSON.stringify(value) ?? "null" }));
  let right: fc.Arbitrary<Body> = fc.constant({ headers: {}, bytes: undefined });
  if (json !== undefined) right = sendJson(valueOf(json.schema));
  else if (content["multipart/form-data"] !== undefined) right = formBody;
  else if (lines !== undefined) right = linesBody(valueOf(lines.schema));
  return fc.oneof(
    { weight: 8, arbitrary: right },
    { weight: 1, arbitrary: sendJson(wild) },
    { weight: 1, arbitrary: rawBody },
  );
}

/** Lines of JSON, some of them empty or invalid, with or without a line break at the end. */
function linesBody(value: fc.Arbitrary<unknown>): fc.Arbitrary<Body> {
  const line = fc.oneof(
    { weight: 8, arbitrary: value.map((one) => JSON.stringify(one) ?? "null") },
    { weight: 1, arbitrary: fc.constantFrom("", " ", "{", "[]", "null", "\u0000", "\r") },
  );
  return fc.tuple(fc.array(line, { maxLength: 6 }), fc.constantFrom("", "\n", "\r\n")).map(([all, end]) => ({
    headers: { "content-type": "application/x-ndjson" },
    bytes: all.join("\n") + end,
  }));
}

const rawBody: fc.Arbitrary<Body> = fc.oneof(
  fc
    .tuple(
      fc.constantFrom(
        "application/json",
        "text/plain",
        "application/json; charset=utf-16",
        "multipart/form-data",
        "multipart/form-data; boundary=",
        "x",
        "application/x-www-form-urlencoded",
        "a/b; c",
      ),
      fc.uint8Array({ maxLength: 300 }),
    )
    .map(([type, bytes]) => ({
      headers: { "content-type": type },
      bytes: Buffer.from(bytes),
    })),
  fc
    .constantFrom(
      "",
      "{",
      "[1,",
      '{"title":',
      "nul",
      "\ufeff{}",
      "[".repeat(5000),
      `{"a":${"[".repeat(90)}${"]".repeat(90)}}`,
      `[${"1,".repeat(20_000)}1]`,
      `{"content":"${"a".repeat(200_000)}"}`,
      '{"title":"\\ud800"}',
      '{"title":1,"title":2}',
      '{"score":1e999}',
    )
    .map((bytes) => ({ headers: JSON_HEADERS, bytes })),
);

/** One white pixel. */
export const SMALL_GIF = Buffer.from("R0lGODlhAQABAIAAAP///wAAACwAAAAAAQABAAACAkQBADs=", "base64");

/** One file of bytes, sometimes in a form that is incomplete, duplicated or without a name. */
const formBody: fc.Arbitrary<Body> = fc
  .record({
    part: fc.oneof(
      { weight: 8, arbitrary: fc.constant("file") },
      { weight: 1, arbitrary: fc.constantFrom("", "x", "__proto__") },
    ),
    name: fc.oneof(
      fc.constantFrom("a.txt", "a.pdf", "../x", "", "a".repeat(300)),
      fc.string({ unit: "grapheme-ascii", maxLength: 20 }),
    ),
    bytes: fc.oneof(
      fc.lorem({ maxCount: 30 }).map((words) => Buffer.from(words)),
      fc.uint8Array({ maxLength: 400 }).map((bytes) => Buffer.from(bytes)),
      fc.constantFrom(
        Buffer.from("%PDF-1.7\n%%EOF"),
        Buffer.from("\x89PNG\r\n\x1a\n", "latin1"),
        Buffer.from("GIF89a"),
        Buffer.from("PK\x03\x04"),
        Buffer.from([0xff, 0xfe, 0x41]),
        SMALL_GIF,
      ),
    ),
    // Fields of a chat upload; other uploads ignore them.
    fields: fc.constantFrom<readonly (readonly [string, string])[]>(
      [],
      [],
      [
        ["agent_id", "default"],
        ["thread_id", "t"],
      ],
      [["thread_id", "t"]],
      [
        ["agent_id", "nobody"],
        ["thread_id", "x".repeat(300)],
      ],
    ),
    end: fc.constantFrom(
      "\r\n--b--\r\n",
      "\r\n--b--\r\n",
      "\r\n--b--\r\n",
      "\r\n--b--",
      "",
      "\r\n--b\r\n\r\n",
    ),
  })
  .map(({ part, name, bytes, end, fields }) => ({
    headers: { "content-type": "multipart/form-data; boundary=b" },
    bytes: Buffer.concat([
      ...fields.map(([field, value]) =>
        Buffer.from(`--b\r\ncontent-disposition: form-data; name="${field}"\r\n\r\n${value}\r\n`),
      ),
      Buffer.from(
        `--b\r\ncontent-disposition: form-data; name="${part}"; filename="${name.replaceAll(/["\r\n]/g, "_")}"\r\n\r\n`,
      ),
      bytes,
      Buffer.from(end),
    ]),
  }));

/** Requests to no operation. */
const strayRequest: fc.Arbitrary<FuzzRequest> = fc
  .record({
    method: fc.constantFrom("GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "PROPFIND"),
    path: fc.oneof(
      fc.constantFrom(
        "/",
        "//",
        "/..",
        "/%",
        "/v1",
        "/v1/keys/",
        "/API/RAG/resource",
        "/openapi.json/",
        "/files/x",
        "/?%",
      ),
      fc.webPath(),
    ),
  })
  .map(({ method, path }) => ({
    method,
    route: "(none)",
    path: path === "" ? "/" : path,
    headers: {},
    body: undefined,
  }));

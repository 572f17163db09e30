import assert from "node:assert/strict";
import type { FastifyInstance } from "fastify";
import { z } from "zod";
import { Refused } from "../../../wire/answers.ts";
import { KEY_HEADER, ROUTES } from "../../../wire/routes.ts";
import type { KeyNeed } from "../operation/keyring.ts";
import { routeConfig, sendJson } from "../operation/operation.ts";
import type { Route, RouteDoc, RouteTable } from "../operation/route-table.ts";

const AnyObject = z.record(z.string(), z.unknown());
const Document = z
  .object({
    openapi: z.string(),
    info: AnyObject,
    servers: z.array(AnyObject),
    paths: AnyObject,
    components: AnyObject,
  })
  .meta({ id: "ApiDocument" });

/** `GET /openapi.json`, an addition: describes this API to programs. Needs no key, as it says no more than docs/API.md. */
export function addOpenApiRoute(server: FastifyInstance, table: RouteTable, version: () => string): void {
  // Built at the first request, when all routes are registered; they do not change afterwards.
  let text: string | undefined;
  const doc = { summary: "This API as an OpenAPI document.", tag: "Service", answers: { 200: Document } };
  server.get(ROUTES.openApi, { config: routeConfig("none", doc) }, async (_request, reply) => {
    text ??= JSON.stringify(openApiDocument(table.routes, version()));
    return sendJson(reply, 200, text);
  });
}

type Json = Readonly<Record<string, unknown>>;

/** Builds the OpenAPI 3.1 document of the API: every route of the table, with the schemas of the wire. */
export function openApiDocument(routes: readonly Route[], version: string): Json {
  const schemas: Schemas = new Map();
  const paths: Record<string, Record<string, Json>> = {};
  for (const route of routes) {
    const path = (paths[pathOf(route.url)] ??= {});
    path[route.method.toLowerCase()] = operation(route, schemas);
  }
  schemaOf(Refused, "output", schemas);
  return {
    openapi: "3.1.0",
    info: {
      title: "kbsync knowledge service",
      version,
      description: "Documents in, passages out. docs/API.md has the rules, the limits and examples.",
    },
    servers: [{ url: "/" }],
    paths,
    components: {
      securitySchemes: { key: { type: "apiKey", in: "header", name: KEY_HEADER } },
      schemas: Object.fromEntries([...schemas].toSorted(([a], [b]) => (a < b ? -1 : 1))),
    },
  };
}

/** The named schemas of the document, collected while it is built. */
type Schemas = Map<string, Json>;

/** Converts `/x/:id` to `/x/{id}`. */
function pathOf(url: string): string {
  return url.replaceAll(/:([^/]+)/g, "{$1}");
}

function operation({ method, url, scope, doc }: Route, schemas: Schemas): Json {
  const parameters = [...pathParameters(url), ...queryParameters(doc, schemas), ...headerParameters(doc)];
  const body = bodyOf(doc, schemas);
  return {
    operationId: operationId(method, url),
    ...(doc === undefined ? {} : { summary: doc.summary, tags: [doc.tag] }),
    ...(scope === "none" || scope === undefined
      ? { security: [] }
      : { security: [{ key: [] }], description: scopeSentence(scope), "x-scope": scope }),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(body === undefined ? {} : { requestBody: { required: true, content: body } }),
    responses: responsesOf(doc, schemas),
  };
}

function scopeSentence(scope: KeyNeed): string {
  return scope === "any" ? "Every valid key may use it." : `The key needs the scope \`${scope}\`.`;
}

/** Derives a stable and unique id from method and path: `get_api_rag_resource_id`. */
function operationId(method: string, url: string): string {
  const words = url.split(/[^A-Za-z0-9]+/).filter((word) => word !== "");
  return [method.toLowerCase(), ...words].join("_");
}

function pathParameters(url: string): Json[] {
  return [...url.matchAll(/:([^/]+)/g)].map(([, name]) => ({
    name,
    in: "path",
    required: true,
    schema: { type: "string" },
  }));
}

function queryParameters(doc: RouteDoc | undefined, schemas: Schemas): Json[] {
  if (doc?.query === undefined) return [];
  // A query is a flat object of strings and integers.
  const { properties = {}, required = [] } = schemaOf(doc.query, "input", schemas) as {
    properties?: Record<string, Json>;
    required?: readonly string[];
  };
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    in: "query",
    required: required.includes(name),
    schema,
  }));
}

function headerParameters(doc: RouteDoc | undefined): Json[] {
  return Object.entries(doc?.headers ?? {}).map(([name, description]) => ({
    name,
    in: "header",
    required: false,
    description,
    schema: { type: "string" },
  }));
}

function bodyOf(doc: RouteDoc | undefined, schemas: Schemas): Json | undefined {
  if (doc?.body !== undefined) return { [JSON_TYPE]: { schema: schemaOf(doc.body, "input", schemas) } };
  if (doc?.form !== undefined)
    return { "multipart/form-data": { schema: schemaOf(doc.form, "input", schemas) } };
  return undefined;
}

function responsesOf(doc: RouteDoc | undefined, schemas: Schemas): Json {
  const own = { $ref: `${SCHEMAS}Failure` };
  const schema =
    doc?.failure === undefined ? own : { anyOf: [own, schemaOf(doc.failure, "output", schemas)] };
  const failure = {
    description: "Refused; `error.code` says why.",
    content: { [JSON_TYPE]: { schema } },
  };
  const good = Object.entries(doc?.answers ?? {}).map(([status, answer]): [string, Json] => {
    const content = {
      ...contentOf(answer, doc?.line, schemas),
      ...(status === "200" ? eventsOf(doc, schemas) : {}),
    };
    const description = doc?.summary ?? "Done.";
    return [status, Object.keys(content).length === 0 ? { description } : { description, content }];
  });
  return { ...Object.fromEntries(good), "4XX": failure, "5XX": failure };
}

/** Describes an answer as server-sent events. OpenAPI 3.1 cannot describe the data of events. */
function eventsOf(doc: RouteDoc | undefined, schemas: Schemas): Json {
  if (doc?.events === undefined) return {};
  const data = Object.entries(doc.events).map(([event, schema]) => [
    event,
    schemaOf(schema, "output", schemas),
  ]);
  const description = "Server-sent events; x-events has the JSON in the data of each.";
  const events = { schema: { type: "string", description }, "x-events": Object.fromEntries(data) };
  return { "text/event-stream": events };
}

function contentOf(answer: RouteDoc["answers"][number], line: RouteDoc["line"], schemas: Schemas): Json {
  if (answer === "empty") return {};
  if (answer === "file") return { "*/*": { schema: { type: "string", format: "binary" } } };
  const schema = schemaOf(answer, "output", schemas);
  const lines = line && { schema: { anyOf: [schemaOf(line, "output", schemas), schema] } };
  return { [JSON_TYPE]: { schema }, ...(lines && { "application/x-ndjson": lines }) };
}

const JSON_TYPE = "application/json";

/** Prefix of references to named schemas. */
const SCHEMAS = "#/components/schemas/";

/** Returns the JSON Schema of a request (`input`) or an answer (`output`). Adds schemas with an id to `schemas`. */
function schemaOf(schema: z.ZodType, io: "input" | "output", schemas: Schemas): Json {
  const {
    $schema: _,
    $defs = {},
    ...json
  } = z.toJSONSchema(schema, {
    io,
    // A transform has no schema; its input has one.
    unrepresentable: "any",
    override: ({ zodSchema, jsonSchema }) => {
      // Answers may gain fields without a change of the contract. Schemas for additional properties of users stay.
      if (io === "output" && jsonSchema.additionalProperties === false) {
        delete jsonSchema.additionalProperties;
      }
      // Zod omits defaults with a transform after them, although all defaults here have the form of the input.
      if (io === "input" && zodSchema instanceof z.ZodDefault)
        jsonSchema.default = zodSchema.def.defaultValue;
      if (io === "input" && zodSchema instanceof z.ZodPipe) narrow(jsonSchema, zodSchema.out);
      // The bounds of JavaScript's safe integers are not part of the contract.
      if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
    },
  });
  for (const [name, definition] of Object.entries($defs)) {
    const named = withDocumentRefs(definition);
    const before = schemas.get(name);
    if (before !== undefined) assert.deepEqual(before, named, `two schemas are named ${name}`);
    schemas.set(name, named);
  }
  return withDocumentRefs(json);
}

/** Changes references to point to the named schemas of the document. */
function withDocumentRefs(schema: object): Json {
  const text = JSON.stringify(schema, (key, value: unknown) =>
    key === "$ref" && typeof value === "string" ? value.replace("#/$defs/", SCHEMAS) : value,
  );
  return JSON.parse(text) as Json; // an object, as above
}

/** Sets the bounds of an integer that may also be sent as digits: they are declared after the conversion. */
function narrow(json: z.core.JSONSchema.BaseSchema, out: unknown): void {
  if (!(out instanceof z.ZodNumber)) return;
  const { minValue, maxValue } = out;
  // Copied, because all integers of the wire share the branches.
  json.anyOf = (json.anyOf ?? []).map((branch) => {
    if (typeof branch === "boolean" || branch.type !== "integer") return branch;
    const { minimum: _minimum, maximum: _maximum, ...rest } = branch;
    if (minValue !== null) rest["minimum"] = minValue;
    if (maxValue !== null && maxValue !== Number.MAX_SAFE_INTEGER) rest["maximum"] = maxValue;
    return rest;
  });
}

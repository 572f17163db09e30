import { z } from "zod";
import { Failure } from "../../wire/failure.ts";
import { KEY_HEADER } from "../../wire/routes.ts";
import type { Route, RouteDoc } from "./route-table.ts";

type Json = Readonly<Record<string, unknown>>;

/** The API as an OpenAPI 3.1 document: every route of the table, its schemas as the wire declares them. */
export function openApiDocument(routes: readonly Route[], version: string): Json {
  const paths: Record<string, Record<string, Json>> = {};
  for (const route of routes) {
    const path = (paths[pathOf(route.url)] ??= {});
    path[route.method.toLowerCase()] = operation(route);
  }
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
      schemas: { Failure: schemaOf(Failure, "output") },
    },
  };
}

/** `/x/:id` as `/x/{id}`. */
function pathOf(url: string): string {
  return url.replaceAll(/:([^/]+)/g, "{$1}");
}

function operation({ method, url, scope, doc }: Route): Json {
  const parameters = [...pathParameters(url), ...queryParameters(doc), ...headerParameters(doc)];
  const body = bodyOf(doc);
  return {
    operationId: operationId(method, url),
    ...(doc === undefined ? {} : { summary: doc.summary, tags: [doc.tag] }),
    ...(scope === "none" || scope === undefined
      ? { security: [] }
      : { security: [{ key: [] }], description: `The key needs the scope \`${scope}\`.`, "x-scope": scope }),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(body === undefined ? {} : { requestBody: { required: true, content: body } }),
    responses: responsesOf(doc),
  };
}

/** From method and path, so that it is stable and unique: `get_api_rag_resource_id`. */
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

function queryParameters(doc: RouteDoc | undefined): Json[] {
  if (doc?.query === undefined) return [];
  // A query is declared as an object of strings and integers: no wire schema nests one.
  const { properties = {}, required = [] } = schemaOf(doc.query, "input") as {
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

function bodyOf(doc: RouteDoc | undefined): Json | undefined {
  if (doc?.body !== undefined) return { [mediaType(doc)]: { schema: schemaOf(doc.body, "input") } };
  if (doc?.form !== undefined) return { "multipart/form-data": { schema: schemaOf(doc.form, "input") } };
  return undefined;
}

function responsesOf(doc: RouteDoc | undefined): Json {
  const failure = {
    description: "Refused; `error.code` says why.",
    content: { "application/json": { schema: { $ref: "#/components/schemas/Failure" } } },
  };
  const good = Object.entries(doc?.answers ?? {}).map(([status, answer]): [string, Json] => [
    status,
    { description: doc?.summary ?? "Done.", ...withEvents(contentOf(answer, mediaType(doc)), status, doc) },
  ]);
  return { ...Object.fromEntries(good), "4XX": failure, "5XX": failure };
}

/** What may also be answered in pieces. */
function withEvents(answer: Json, status: string, doc: RouteDoc | undefined): Json {
  if (doc?.events === undefined || status !== "200") return answer;
  const events = { schema: { type: "string", description: doc.events } };
  return { content: { ...(answer["content"] as Json), "text/event-stream": events } }; // made by contentOf
}

function contentOf(answer: RouteDoc["answers"][number], type: string): Json {
  if (answer === "empty") return {};
  if (answer === "file") return { content: { "*/*": { schema: { type: "string", format: "binary" } } } };
  return { content: { [type]: { schema: schemaOf(answer, "output") } } };
}

function mediaType(doc: RouteDoc | undefined): string {
  return doc?.lines === true ? "application/x-ndjson" : "application/json";
}

/** The JSON Schema of what is sent (`input`) or answered (`output`). */
function schemaOf(schema: z.ZodType, io: "input" | "output"): Json {
  const { $schema: _, ...json } = z.toJSONSchema(schema, {
    io,
    // A transform has no schema of its own; what goes into it has.
    unrepresentable: "any",
    override: ({ zodSchema, jsonSchema }) => {
      // Answers may grow fields: that is no change of the contract.
      if (io === "output") delete jsonSchema.additionalProperties;
      if (io === "input" && zodSchema instanceof z.ZodPipe) narrow(jsonSchema, zodSchema.out);
      // The bounds of what JavaScript counts exactly are no rule of ours.
      if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
    },
  });
  return json;
}

/** An integer that may come as digits is bounded behind the change of form: the bounds belong to the number. */
function narrow(json: z.core.JSONSchema.BaseSchema, out: unknown): void {
  if (!(out instanceof z.ZodNumber)) return;
  const { minValue, maxValue } = out;
  // Copied: the branches are shared with every other integer of the wire.
  json.anyOf = (json.anyOf ?? []).map((branch) => {
    if (typeof branch === "boolean" || branch.type !== "integer") return branch;
    const { minimum: _minimum, maximum: _maximum, ...rest } = branch;
    if (minValue !== null) rest["minimum"] = minValue;
    if (maxValue !== null && maxValue !== Number.MAX_SAFE_INTEGER) rest["maximum"] = maxValue;
    return rest;
  });
}

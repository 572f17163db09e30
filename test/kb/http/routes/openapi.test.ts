import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openRunning } from "../../service/running.ts";
import type { Answered, Running } from "../../service/running.ts";

let running: Running;
let answer: Answered;
beforeAll(async () => {
  running = await openRunning();
  answer = await running.send("GET", "/openapi.json", { key: null });
});
afterAll(() => running.close());

/** The parts of an operation that the tests check. */
interface Declared {
  readonly operationId: string;
  readonly parameters?: readonly { readonly name: string; readonly in: string }[];
  readonly responses: Readonly<
    Record<string, { readonly content?: Readonly<Record<string, { readonly schema: DeclaredSchema }>> }>
  >;
}

type DeclaredSchema = object | { readonly anyOf: readonly object[] };

const pathOf = (url: string): string => url.replaceAll(/:(\w+)/g, "{$1}");

describe("the OpenAPI document", () => {
  it("serves the document without a key as OpenAPI 3.1", () => {
    expect(answer.status).toBe(200);
    expect(answer.headers["content-type"]).toBe("application/json; charset=utf-8");
    expect(answer.json).toMatchObject({
      openapi: "3.1.0",
      info: { title: expect.any(String), version: "0.0.0-test" },
    });
  });

  it("describes every registered route with a summary and the bodies of its successes", () => {
    const { paths } = answer.json;
    const routes = running.service.routes();
    expect(routes.length).toBeGreaterThan(15);
    for (const { method, url, doc } of routes) {
      const operation = paths[pathOf(url)]?.[method.toLowerCase()];
      expect({ url, summary: operation?.summary }).toEqual({
        url,
        summary: expect.stringMatching(/\w.*\.$/),
      });
      expect(
        Object.keys(operation.responses).filter((status) => status.startsWith("2")).length,
      ).toBeGreaterThan(0);
      expect(doc?.tag).toMatch(/\w/);
    }
    const count = Object.values<object>(paths).flatMap((path) => Object.keys(path)).length;
    expect(count).toBe(routes.length);
  });

  it("names each operation once, declares each path parameter and resolves every reference", () => {
    const ids: string[] = [];
    for (const [path, operations] of Object.entries<Record<string, Declared>>(answer.json.paths)) {
      for (const operation of Object.values(operations)) {
        ids.push(operation.operationId);
        const declared = (operation.parameters ?? []).filter((one) => one.in === "path");
        expect(declared.map(({ name }) => `{${name}}`)).toEqual(path.match(/\{\w+\}/g) ?? []);
      }
    }
    expect(new Set(ids).size).toBe(ids.length);
    for (const [, name = ""] of answer.text.matchAll(/"#\/components\/schemas\/(\w+)"/g)) {
      expect(answer.json.components.schemas).toHaveProperty(name);
    }
  });

  it("names the body of every answer and the fields of a record", () => {
    const { paths, components } = answer.json;
    for (const [path, operations] of Object.entries<Record<string, Declared>>(paths)) {
      for (const [method, { responses }] of Object.entries(operations)) {
        for (const [type, { schema }] of Object.values(responses).flatMap(({ content = {} }) =>
          Object.entries(content),
        )) {
          if (type === "*/*" || type === "text/event-stream") continue;
          const names = "anyOf" in schema ? schema.anyOf : [schema];
          expect({ path, method, names }).toEqual({
            path,
            method,
            names: names.map(() => ({ $ref: expect.stringMatching(/^#\/components\/schemas\/\w+$/) })),
          });
        }
      }
    }
    const { CreatedResource, DeletedResource, ResourceMetadata } = components.schemas;
    expect(
      Object.keys(CreatedResource.properties).filter((name) => !CreatedResource.required.includes(name)),
    ).toEqual(["url", "metadata"]);
    expect(DeletedResource.required).toContain("deletedAt");
    expect(Object.keys(ResourceMetadata.properties)).toEqual([
      "status",
      "error",
      "message",
      "strategyUsed",
      "warning",
    ]);
    expect(ResourceMetadata.additionalProperties).toEqual({ $ref: "#/components/schemas/MetadataValue" });
  });

  it("states scopes and bounds", () => {
    const create = answer.json.paths["/api/rag/resource"].post;
    expect(create["x-scope"]).toBe("write");
    expect(create.requestBody.content["application/json"].schema).toEqual({
      $ref: "#/components/schemas/CreateBody",
    });
    const { settings, title } = answer.json.components.schemas.CreateBody.properties;
    expect(title).toMatchObject({ type: "string", minLength: 1, maxLength: 2000 });
    expect(settings.properties.strategy.default).toBe("recursive");
    expect(settings.properties.chunkSize.default).toBe(1000);
    expect(settings.properties.chunkSize.anyOf).toContainEqual({
      type: "integer",
      minimum: 1,
      maximum: 4000,
    });
    expect(settings.properties.chunkOverlap.anyOf).toContainEqual({ type: "integer", minimum: 0 });
    expect(answer.json.paths["/v1/health"].get.security).toEqual([]);
    const chat = answer.json.paths["/api/v2/model/chat/completion"].post;
    expect(chat["x-scope"]).toBe("chat");
    expect(Object.keys(chat.responses["200"].content)).toEqual(["application/json", "text/event-stream"]);
  });

  // Clients are generated from the document, so each change must be deliberate: `vitest -u` records it.
  it("equals the published document, except for descriptions", async () => {
    const words = new Set(["description", "summary", "version"]);
    const published = JSON.stringify(
      answer.json,
      (key, value: unknown) => (words.has(key) && typeof value === "string" ? undefined : value),
      1,
    );
    await expect(`${published}\n`).toMatchFileSnapshot("openapi.snap");
  });
});

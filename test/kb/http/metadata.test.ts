import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createBody, openRunning } from "../service/running.ts";
import type { Answered, Running } from "../service/running.ts";

let running: Running;
let collectionId: string;
beforeAll(async () => {
  running = await openRunning();
  for (const [lang, year] of [
    ["de", 2019],
    ["en", 2022],
    ["en", 2024],
  ] as const) {
    const made = await create({ lang, year, tags: ["sea", lang], place: { country: "x", open: true } });
    collectionId = made.json.data.collectionId;
  }
});
afterAll(() => running.close());

const create = (metadata: unknown): Promise<Answered> =>
  running.send("POST", "/api/rag/resource", { body: createBody({ owner_id: "meta", metadata }) });
const search = (filter: unknown): Promise<Answered> =>
  running.send("POST", "/rag/query", {
    body: { query: "moon", collection_id: collectionId, owner_id: "meta", top_k: 50, filter },
  });

describe("metadata", () => {
  it("metadata is announced with the collections", async () => {
    const { json } = await running.send("GET", "/api/rag/collections");
    expect(json.data.metadata).toBe(true);
  });

  it("returns metadata in the record together with the service's own keys", async () => {
    const { json } = await create({ lang: "fr", nested: { deep: [1, null] } });
    const path = `/api/rag/resource/${json.data._id}`;
    expect(json.data).not.toHaveProperty("metadata");
    const read = await running.send("GET", path);
    expect(read.json.data.metadata).toEqual({ lang: "fr", nested: { deep: [1, null] }, status: "chunked" });
    const retitled = await running.send("PUT", path, { body: { title: "Other" } });
    expect(retitled.json.data.metadata).toMatchObject({ lang: "fr" });
    const changed = await running.send("PUT", path, { body: { metadata: { lang: "it" } } });
    expect(changed.json.data.metadata).toEqual({ lang: "it", status: "chunked" });
    expect((await running.send("GET", `${path}/chunks`)).json.data.version).toBe(1);
    const emptied = await running.send("PUT", path, { body: { metadata: {} } });
    expect(emptied.json.data.metadata).toEqual({ status: "chunked" });
  });

  it("returns the description of a folder with results and chunks, and none where it is no string", async () => {
    const folderDescription = "All about the coast.";
    const made = await create({ lang: "coast", folderDescription });
    const other = await create({ lang: "coast", folderDescription: [folderDescription] });
    const { json } = await search({ lang: "coast" });
    const descriptions = new Map(
      json.results.map(({ payload }: { payload: Record<string, unknown> }) => [
        payload["resourceId"],
        payload["folderDescription"],
      ]),
    );
    expect(descriptions).toEqual(
      new Map([
        [made.json.data._id, folderDescription],
        [other.json.data._id, undefined],
      ]),
    );
    const chunksOf = async ({ json: { data } }: Answered) =>
      (await running.send("GET", `/api/rag/resource/${data._id}/chunks`)).json.data;
    expect(await chunksOf(made)).toMatchObject({ folderDescription });
    expect(await chunksOf(other)).not.toHaveProperty("folderDescription");
    for (const { json: one } of [made, other])
      await running.send("DELETE", `/api/rag/resource/${one.data._id}`);
  });

  it("returns the path of a file with results and chunks, and none where it is no string", async () => {
    const made = await create({ lang: "paths", path: "plans/2024.md" });
    const other = await create({ lang: "paths", path: 7 });
    const { json } = await search({ lang: "paths" });
    const paths = json.results.map(({ payload }: { payload: Record<string, unknown> }) => [
      payload["resourceId"],
      payload["filePath"],
    ]);
    expect(new Map(paths)).toEqual(
      new Map([
        [made.json.data._id, "plans/2024.md"],
        [other.json.data._id, undefined],
      ]),
    );
    const chunks = await running.send("GET", `/api/rag/resource/${made.json.data._id}/chunks`);
    expect(chunks.json.data).toMatchObject({ filePath: "plans/2024.md" });
    for (const { json: one } of [made, other])
      await running.send("DELETE", `/api/rag/resource/${one.data._id}`);
  });

  it.each([
    ["a text", "x", "metadata"],
    ["null", null, "metadata"],
    ["a list", [], "metadata"],
    ["the service's own key", { status: "mine" }, "metadata.status"],
    ["a key with a dot", { "a.b": 1 }, "metadata.a.b"],
    ["a key that is not valid text", { "\ud800": 1 }, "metadata.\ud800"],
    ["an operator as key", { deep: { or: 1 } }, "metadata.deep.or"],
    ["an object in a list", { a: [1, {}] }, "metadata.a[1]"],
    ["a long string", { a: "x".repeat(1025) }, "metadata.a"],
    ["too many levels", { a: { b: { c: { d: { e: 1 } } } } }, "metadata.a.b.c.d"],
    ["too many values", { a: Array.from({ length: 129 }, () => 1) }, "metadata"],
    [
      "too many bytes",
      Object.fromEntries(Array.from({ length: 9 }, (_, at) => [at, "x".repeat(1000)])),
      "metadata",
    ],
  ])("refuses metadata with %s, and names the field", async (_name, metadata, field) => {
    const answer = await create(metadata);
    expect(answer).toMatchObject({ status: 400, json: { error: { code: "invalid_field", field } } });
  });

  it.each([
    ["values", { year: { in: [] } }, "filter.year.in: expected at least one value, got an empty array"],
    ["filters", { or: [] }, "filter.or: expected at least one filter, got an empty array"],
  ])("refuses a filter with an empty list of %s with a clear message", async (_name, filter, message) => {
    expect((await search(filter)).json.message).toBe(message);
  });

  it("refuses metadata with a number that is too large to store", async () => {
    const body = JSON.stringify(createBody({ metadata: { a: 0 } })).replace('{"a":0}', '{"a":1e400}');
    const answer = await running.send("POST", "/api/rag/resource", { body });
    expect(answer).toMatchObject({ status: 400, json: { error: { field: "metadata.a" } } });
  });
});

describe("filter", () => {
  it.each([
    ["a value", { lang: "en" }, 2],
    ["several conditions", { lang: "en", year: 2024 }, 1],
    ["a value of a list", { tags: "sea" }, 3],
    ["a nested value", { "place.open": true }, 3],
    ["one of some values", { year: { in: [2019, 2024] } }, 2],
    ["bounds", { year: { gte: 2019, lt: 2024 } }, 2],
    ["open bounds", { year: { gt: 2019 } }, 2],
    ["and", { and: [{ lang: "en" }, { year: { lte: 2022 } }] }, 1],
    ["or", { or: [{ lang: "de" }, { year: 2024 }] }, 2],
    ["not", { not: { lang: "en" } }, 1],
    ["a number as text", { year: "2024" }, 0],
    ["an unknown path", { nothing: null }, 0],
  ])("finds matching documents with a filter of %s", async (_name, filter, count) => {
    const answer = await search(filter);
    expect(answer.status).toBe(200);
    // Earlier tests created the other documents.
    expect(answer.json.results).toHaveLength(count + (JSON.stringify(filter).includes('not"') ? 1 : 0));
  });

  it.each([
    ["a text", "x", "filter"],
    ["no condition", {}, "filter"],
    ["an unknown operator", { year: { above: 1 } }, "filter.year.above"],
    ["in together with a bound", { year: { in: [1], gt: 1 } }, "filter.year.in"],
    ["no values", { year: { in: [] } }, "filter.year.in"],
    ["an object as value", { year: { in: [{}] } }, "filter.year.in[0]"],
    ["a list as value", { year: [1] }, "filter.year"],
    ["a bound that has no order", { year: { gt: true } }, "filter.year.gt"],
    ["bounds of two types", { year: { gt: 1, lt: "2" } }, "filter.year"],
    ["and of one filter", { and: { lang: "en" } }, "filter.and"],
    ["too many levels", nested(9), "filter.not.not.not.not.not.not.not.not"],
    ["too many conditions", { or: Array.from({ length: 65 }, () => ({ a: 1 })) }, "filter"],
  ])("refuses a filter with %s, and names the field", async (_name, filter, field) => {
    const answer = await search(filter);
    expect(answer).toMatchObject({ status: 400, json: { error: { code: "invalid_field", field } } });
  });
});

function nested(levels: number): object {
  return levels === 1 ? { a: 1 } : { not: nested(levels - 1) };
}

import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createBody, fileForm, openRunning } from "../service/running.ts";
import type { Running } from "../service/running.ts";

let running: Running;
beforeAll(async () => {
  running = await openRunning();
});
afterAll(() => running.close());

const ID = expect.stringMatching(/^[0-9a-f]{24}$/);
const TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
const UUID = expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/);

const create = (change: object = {}) =>
  running.send("POST", "/api/rag/resource", { body: createBody(change) });
const update = (id: string, body: object) => running.send("PUT", `/api/rag/resource/${id}`, { body });
const upload = async (bytes: string | Uint8Array, name?: string): Promise<string> => {
  const answer = await running.send("POST", "/image/processing/upload", { body: fileForm(bytes, name) });
  return answer.json.file_url;
};
const list = (collectionId: string, ownerId: string, more = "") =>
  running.send(
    "GET",
    `/api/rag/resource/by-collection?collectionId=${collectionId}&ownerId=${ownerId}${more}`,
  );
const search = (body: object) => running.send("POST", "/rag/query", { body });

describe("create", () => {
  it("answers a create with 201 and exactly the record's fields, without content and metadata", async () => {
    const { status, json } = await create({ owner_id: "ada" });
    expect(status).toBe(201);
    expect(json).toEqual({
      success: true,
      message: "Resource created successfully",
      data: {
        _id: ID,
        title: "Tides",
        description: "About the sea",
        collectionId: ID,
        ownerId: "ada",
        refreshedAt: null,
        isDeleted: false,
        settings: { strategy: "recursive", chunkSize: 1000, chunkOverlap: 100 },
        createdAt: TIME,
        updatedAt: json.data.createdAt,
      },
    });
  });

  it("creates a resource from an uploaded file and returns its url", async () => {
    const url = await upload("The lighthouse keeper counted the ships.");
    const { status, json } = await create({ content: undefined, url });
    expect(status).toBe(201);
    expect(json.data.url).toBe(url);
    const { json: read } = await running.send("GET", `/api/rag/resource/${json.data._id}`);
    expect(read.data.content).toBe("The lighthouse keeper counted the ships.");
  });

  it("accepts integers as numeric strings and stores them as numbers", async () => {
    const { json } = await create({
      settings: { strategy: "recursive", chunkSize: "512", chunkOverlap: "50" },
    });
    expect(json.data.settings).toEqual({ strategy: "recursive", chunkSize: 512, chunkOverlap: 50 });
  });

  it("shrinks the default overlap with a small chunkSize", async () => {
    const { json } = await create({ settings: { chunkSize: 50 } });
    expect(json.data.settings).toEqual({ strategy: "recursive", chunkSize: 50, chunkOverlap: 5 });
  });

  it("uses the account's id as owner by default", async () => {
    const first = await create();
    const second = await create();
    expect(first.json.data.ownerId).toMatch(/^[0-9a-f]{24}$/);
    expect(second.json.data.ownerId).toBe(first.json.data.ownerId);
  });

  it("accepts empty and blank content as a document without chunks", async () => {
    for (const content of ["", " \n\n\t"]) {
      const { status, json } = await create({ content });
      expect(status).toBe(201);
      const { json: chunks } = await running.send("GET", `/api/rag/resource/${json.data._id}/chunks`);
      expect(chunks.data.chunks).toEqual([]);
    }
  });

  it("allows two resources with one title", async () => {
    const [one, two] = [await create({ title: "Twin" }), await create({ title: "Twin" })];
    expect([one.status, two.status]).toEqual([201, 201]);
    expect(one.json.data._id).not.toBe(two.json.data._id);
  });

  it("ignores unknown preferences and fields", async () => {
    const answer = await running.send("POST", "/api/rag/resource", {
      body: createBody({ surprise: [1, 2], __proto__: null }),
      headers: { prefer: "return=minimal, wait=5" },
    });
    expect(answer.status).toBe(201);
  });

  it("never applies keys named like a prototype", async () => {
    const body = JSON.stringify(createBody()).replace(
      "{",
      '{"__proto__":{"owner_id":"evil"},"constructor":{"prototype":{}},',
    );
    const answer = await running.send("POST", "/api/rag/resource", { body });
    expect(answer.status).toBe(201);
    expect(answer.json.data.ownerId).not.toBe("evil");
    expect(({} as Record<string, unknown>)["owner_id"]).toBeUndefined();
  });

  it("stores any well-formed text as it is, and lone surrogates as U+FFFD", async () => {
    const content = "Größe 🌊 \u0000 \u2028 \ufeff end";
    const { json } = await create({ content });
    const { json: read } = await running.send("GET", `/api/rag/resource/${json.data._id}`);
    expect(read.data.content).toBe(content);
    const lone = await create({ content: "a \ud800 b", title: "\udfff", owner_id: "\udc00" });
    expect(lone.json.data).toMatchObject({ title: "\ufffd", ownerId: "\ufffd" });
  });
});

describe("update", () => {
  it("answers an update with 200 and the whole record, with its time in refreshedAt and updatedAt", async () => {
    const { json: made } = await create({ owner_id: "ada" });
    const { status, json } = await update(made.data._id, { content: "New words." });
    expect(status).toBe(200);
    expect(json).toEqual({
      success: true,
      message: "Resource updated successfully",
      data: {
        ...made.data,
        content: "New words.",
        refreshedAt: TIME,
        updatedAt: json.data.refreshedAt,
        metadata: { status: "chunked" },
      },
    });
  });

  it("changes title and description without chunking again", async () => {
    const { json: made } = await create();
    const before = await running.send("GET", `/api/rag/resource/${made.data._id}/chunks`);
    const { json } = await update(made.data._id, { title: "Other", description: "" });
    const known = { "if-none-match": String(before.headers["etag"]) };
    const after = await running.send("GET", `/api/rag/resource/${made.data._id}/chunks`, { headers: known });
    expect(json.data).toMatchObject({ title: "Other", description: "", refreshedAt: TIME });
    const chunks = before.json.data.chunks.map((chunk: object) => ({ ...chunk, path: "Other" }));
    expect(after.json.data).toEqual({ ...before.json.data, title: "Other", chunks });
    expect(after.json.data.version).toBe(1);
  });

  it("stores the marker of a description as it came, and finds and answers the same with another one", async () => {
    const markers = ["x7f2k5wd", "aaaaaaaa"].map(
      (writer) => `[kb:docs7q2x.7f3k2mqx4ab5.h2k4m7p6qa2c.${writer}]`,
    );
    const found = [];
    for (const marker of markers) {
      const body = { title: "Marked", description: `About tides ${marker}`, owner_id: marker };
      const { data } = (await create(body)).json;
      expect(data.description).toBe(body.description);
      const listed = (await list(data.collectionId, marker)).json.data.resources;
      expect(listed).toMatchObject([{ _id: data._id, description: body.description }]);
      const read = async () => {
        const { chunks } = (await running.send("GET", `/api/rag/resource/${data._id}/chunks`)).json.data;
        const { results } = (await search({ query: "moon about x7f2k5wd", doc_id: data._id })).json;
        return { chunks, results };
      };
      const before = await read();
      const changed = await update(data._id, { description: marker });
      expect(changed.json.data).toMatchObject({ description: marker, refreshedAt: TIME });
      expect(await read()).toEqual(before);
      expect(before.chunks[0].id).toBe(before.results[0].id);
      const { id: _, resourceId: _id, ownerId: _owner, ...payload } = before.results[0].payload;
      found.push({ score: before.results[0].score, payload });
    }
    expect(found[1]).toEqual(found[0]);
  });

  it.each([
    {
      name: "the same content",
      body: { content: "# Tides\n\nThe moon pulls the sea. Twice a day the water rises." },
    },
    { name: "settings", body: { settings: { chunkSize: 30, chunkOverlap: 0 } } },
  ])("chunks again for $name: version 2", async ({ body }) => {
    const { json: made } = await create();
    await update(made.data._id, body);
    const { json } = await running.send("GET", `/api/rag/resource/${made.data._id}/chunks`);
    expect(json.data.version).toBe(2);
  });

  it("replaces a file resource's file by another upload", async () => {
    const { json: made } = await create({ content: undefined, url: await upload("first", "a.txt") });
    const url = await upload("second", "a.txt");
    const { status, json } = await update(made.data._id, { url });
    expect(status).toBe(200);
    expect(json.data).toMatchObject({ url, content: "second" });
  });

  it("leaves other settings as they are when some are updated", async () => {
    const { json: made } = await create({ settings: { chunkSize: 200, chunkOverlap: 30 } });
    const { json: smaller } = await update(made.data._id, { settings: { chunkOverlap: 10 } });
    expect(smaller.data.settings).toEqual({ strategy: "recursive", chunkSize: 200, chunkOverlap: 10 });
    const { json: larger } = await update(made.data._id, { settings: { chunkSize: 500 } });
    expect(larger.data.settings).toEqual({ strategy: "recursive", chunkSize: 500, chunkOverlap: 10 });
  });

  it("keeps the blanks of a title", async () => {
    const { json: made } = await create({ title: " padded " });
    expect(made.data.title).toBe(" padded ");
    const { json: after } = await update(made.data._id, { title: "\tpadded\n" });
    expect(after.data.title).toBe("\tpadded\n");
  });

  it("applies the last of many concurrent updates", async () => {
    const { json: made } = await create();
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, i) => update(made.data._id, { content: `Text number ${i}.` })),
    );
    expect(answers.every(({ status }) => status === 200)).toBe(true);
    const { json: chunks } = await running.send("GET", `/api/rag/resource/${made.data._id}/chunks`);
    const { json: read } = await running.send("GET", `/api/rag/resource/${made.data._id}`);
    expect(chunks.data.version).toBe(21);
    expect(chunks.data.chunks.map((chunk: { content: string }) => chunk.content)).toEqual([
      read.data.content,
    ]);
  });
});

describe("concurrent updates", () => {
  it("chunks the current text after concurrent updates of settings and content", async () => {
    // The first takes longer, because another thread chunks the long text again; the second could finish earlier.
    const { json: made } = await create({ content: "A sentence about the sea. ".repeat(10_000) });
    const answers = await Promise.all([
      update(made.data._id, { settings: { chunkSize: 100, chunkOverlap: 10 } }),
      update(made.data._id, { content: "Short now." }),
    ]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
    const { json: read } = await running.send("GET", `/api/rag/resource/${made.data._id}`);
    const { json: chunks } = await running.send("GET", `/api/rag/resource/${made.data._id}/chunks`);
    expect(read.data).toMatchObject({ content: "Short now.", settings: { chunkSize: 100 } });
    expect(chunks.data.chunks.map((chunk: { content: string }) => chunk.content)).toEqual(["Short now."]);
  });
});

describe("delete", () => {
  it("answers a delete with the deleted record, and later requests except for the record with 404", async () => {
    const { json: made } = await create({ owner_id: "del" });
    const path = `/api/rag/resource/${made.data._id}`;
    const { status, json } = await running.send("DELETE", path);
    expect(status).toBe(200);
    expect(json).toEqual({
      success: true,
      message: "Resource deleted successfully",
      data: {
        ...made.data,
        content: expect.stringContaining("Tides"),
        isDeleted: true,
        updatedAt: TIME,
        deletedAt: TIME,
        metadata: { status: "chunked" },
      },
    });
    const after = await Promise.all([
      running.send("DELETE", path),
      running.send("GET", path),
      running.send("GET", `${path}/chunks`),
      update(made.data._id, { title: "x" }),
      update(made.data._id, { content: "x" }),
      search({ query: "moon", doc_id: made.data._id }),
    ]);
    // Only the record remains readable, for the account's audit.
    expect(after.map((answer) => answer.status)).toEqual([404, 200, 404, 404, 404, 404]);
    expect(after[1]?.json.data).toMatchObject({ isDeleted: true, content: "", deletedAt: TIME });
    const { json: listed } = await list(made.data.collectionId, "del");
    expect(listed.data.resources).toEqual([]);
  });

  it.each([
    {
      name: "with a JSON content-type and no body",
      headers: { accept: "application/json", "content-type": "application/json" },
    },
    { name: "with accept alone", headers: { accept: "application/json" } },
  ])("deletes a resource $name", async ({ headers }) => {
    const { json: made } = await create();
    const answer = await running.send("DELETE", `/api/rag/resource/${made.data._id}`, { headers });
    expect(answer.status).toBe(200);
  });
});

describe("list", () => {
  it("lists exactly the live resources of the owner, with created 0", async () => {
    const { json: one } = await create({ owner_id: "list-a", title: "One" });
    await create({ owner_id: "list-b" });
    const { status, json } = await list(one.data.collectionId, "list-a");
    expect(status).toBe(200);
    expect(json).toEqual({
      success: true,
      message: "Resources fetched successfully",
      data: {
        resources: [{ ...one.data, content: expect.any(String), metadata: { status: "chunked" } }],
        created: 0,
      },
    });
  });

  it("returns an empty list for an owner without resources", async () => {
    const { json: one } = await create();
    const { json } = await list(one.data.collectionId, "nobody");
    expect(json.data).toEqual({ resources: [], created: 0 });
  });

  it("lists each resource once in pages, with a null nextCursor at the end", async () => {
    const made: string[] = [];
    for (let i = 0; i < 7; i++) made.push((await create({ owner_id: "pages", title: `${i}` })).json.data._id);
    const { json: first } = await create({ owner_id: "elsewhere" });
    for (const limit of [1, 3, 7, 100]) {
      const seen: string[] = [];
      let pages = 0;
      let cursor: string | null = "";
      while (cursor !== null) {
        const { json } = await list(
          first.data.collectionId,
          "pages",
          `&limit=${limit}${cursor === "" ? "" : `&cursor=${cursor}`}`,
        );
        expect(Object.keys(json.data)).toEqual(["resources", "created", "nextCursor"]);
        seen.push(...json.data.resources.map((resource: { _id: string }) => resource._id));
        cursor = json.data.nextCursor;
        pages += 1;
      }
      expect(pages).toBe(Math.ceil(7 / limit));
      expect(seen).toEqual(made);
    }
  });

  it("lists and returns records without their texts where content=false", async () => {
    const { json: made } = await create({ owner_id: "bare", metadata: { lang: "en" } });
    const { _id, collectionId } = made.data;
    const { json: whole } = await running.send("GET", `/api/rag/resource/${_id}`);
    const bare = { ...whole.data, content: "" };
    expect((await running.send("GET", `/api/rag/resource/${_id}?content=false`)).json.data).toEqual(bare);
    expect((await list(collectionId, "bare", "&content=false")).json.data.resources).toEqual([bare]);
    expect((await list(collectionId, "bare", "&content=true")).json.data.resources).toEqual([whole.data]);
    expect((await list(collectionId, "bare", "&content=no")).status).toBe(400);
  });

  it("lists hundreds of resources unpaginated", async () => {
    await Promise.all(
      Array.from({ length: 150 }, () => create({ owner_id: "many", content: "word ".repeat(200) })),
    );
    const { json: first } = await create({ owner_id: "many" });
    const { json } = await list(first.data.collectionId, "many");
    expect(new Set(json.data.resources.map((resource: { _id: string }) => resource._id)).size).toBe(151);
    expect(json.data.resources).toHaveLength(151);
  });
});

describe("search", () => {
  it("answers a search of a document with text and results in the specified form", async () => {
    const { json: made } = await create({ owner_id: "reader" });
    const { status, json } = await search({ query: "moon", doc_id: made.data._id });
    expect(status).toBe(200);
    expect(Object.keys(json).toSorted()).toEqual(["pending", "results", "success", "text"]);
    expect(json.results).toEqual([
      {
        id: UUID,
        version: 1,
        score: expect.any(Number),
        payload: {
          resourceId: made.data._id,
          collectionId: made.data.collectionId,
          content: expect.stringContaining("moon"),
          ownerId: "reader",
          // Additions.
          title: made.data.title,
          headings: [],
          path: made.data.title,
          start: 0,
          end: json.text.length,
          lines: { first: 1, last: json.text.split("\n").length },
          sha256: createHash("sha256").update(json.text).digest("hex"),
        },
      },
    ]);
    expect(json.text).toBe(json.results[0].payload.content);
  });

  it("searches only the owner's resources in a collection, best first, with texts joined by a blank line", async () => {
    const { json: made } = await create({ owner_id: "s1", content: "Zebras graze." });
    await create({ owner_id: "s1", content: "Zebras and more zebras: zebras everywhere." });
    await create({ owner_id: "s2", content: "Zebras of another owner." });
    const { json } = await search({ query: "zebras", collection_id: made.data.collectionId, owner_id: "s1" });
    expect(json.results).toHaveLength(2);
    const scores = json.results.map((result: { score: number }) => result.score);
    expect(scores).toEqual(scores.toSorted((a: number, b: number) => b - a));
    expect(scores.every((score: number) => score >= 0 && score <= 1)).toBe(true);
    expect(json.text).toBe(
      json.results.map((result: { payload: { content: string } }) => result.payload.content).join("\n\n"),
    );
  });

  it("returns 5 results by default and top_k otherwise", async () => {
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, i) => create({ owner_id: "topk", content: `Walrus number ${i}.` })),
    );
    const where = { query: "walrus", collection_id: answers[0]?.json.data.collectionId, owner_id: "topk" };
    expect((await search(where)).json.results).toHaveLength(5);
    expect((await search({ ...where, top_k: 7 })).json.results).toHaveLength(7);
    expect((await search({ ...where, top_k: "8" })).json.results).toHaveLength(8);
  });

  it("returns only results at or above score", async () => {
    const { json: made } = await create({ content: "Penguins swim." });
    const { json: all } = await search({ query: "penguins", doc_id: made.data._id });
    const score = all.results[0].score;
    expect((await search({ query: "penguins", doc_id: made.data._id, score })).json.results).toHaveLength(1);
    if (score < 1) {
      const above = await search({
        query: "penguins",
        doc_id: made.data._id,
        score: Math.min(1, score + 0.001),
      });
      // oxlint-disable-next-line vitest/no-conditional-expect -- at a score of 1 there is nothing above
      expect(above.json).toMatchObject({ success: true, text: "", results: [] });
    }
  });

  it("finds the new words and not the old ones after an update", async () => {
    const { json: made } = await create({ owner_id: "fresh", content: "An ocelot." });
    await update(made.data._id, { content: "A capybara." });
    const where = { collection_id: made.data.collectionId, owner_id: "fresh" };
    expect((await search({ ...where, query: "ocelot" })).json.results).toEqual([]);
    const { json } = await search({ ...where, query: "capybara" });
    expect(json.results[0].version).toBe(2);
  });

  it("returns an empty list if nothing is found", async () => {
    const { json: made } = await create();
    const { status, json } = await search({ query: "xylophone", doc_id: made.data._id });
    expect(status).toBe(200);
    expect(json).toMatchObject({ success: true, text: "", results: [] });
  });
});

describe("additions", () => {
  it("lists the three collections, one per wire value, with stable ids", async () => {
    const key = await running.issueKey("counted");
    const before = await running.send("GET", "/api/rag/collections", { key });
    await running.send("POST", "/api/rag/resource", { key, body: createBody() });
    const { status, json } = await running.send("GET", "/api/rag/collections", { key });
    expect(status).toBe(200);
    expect(json).toMatchObject({
      success: true,
      data: {
        collections: [
          { _id: ID, details: "fastest", resources: 1, chunks: 1 },
          { _id: ID, details: "moderate", resources: 0, chunks: 0 },
          { _id: ID, details: "high_accuracy", resources: 0, chunks: 0 },
        ],
      },
    });
    const ids = (answer: { json: { data: { collections: { _id: string }[] } } }) =>
      answer.json.data.collections.map(({ _id }) => _id);
    expect(ids(before)).toEqual(ids({ json }));
  });

  it("returns chunks with offsets into the content", async () => {
    const content = `# A\n\n${"One sentence here. ".repeat(20)}\n\n## B\n\n${"Another one there. ".repeat(20)}`;
    const { json: made } = await create({ content, settings: { chunkSize: 100, chunkOverlap: 20 } });
    const { json } = await running.send("GET", `/api/rag/resource/${made.data._id}/chunks`);
    expect(json.data.chunks.length).toBeGreaterThan(5);
    for (const chunk of json.data.chunks) {
      expect(chunk).toEqual({
        id: UUID,
        start: expect.any(Number),
        end: expect.any(Number),
        headings: expect.any(Array),
        path: ["Tides", ...chunk.headings].join(" > "),
        lines: {
          first: content.slice(0, chunk.start).split("\n").length,
          last: content.slice(0, chunk.end).split("\n").length,
        },
        content: content.slice(chunk.start, chunk.end),
      });
    }
  });

  it("answers HEAD like GET, without a body", async () => {
    const { json: made } = await create();
    const answer = await running.send("HEAD", `/api/rag/resource/${made.data._id}`);
    expect(answer).toMatchObject({ status: 200, text: "" });
    expect((await running.send("HEAD", "/nope")).status).toBe(404);
  });
});

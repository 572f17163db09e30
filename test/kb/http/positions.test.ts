import { hash } from "node:crypto";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ask, openAsking, OWNER } from "../chat/asking.ts";
import { buildPdf, textPage } from "../ingest/extract/pdf-fixture.ts";
import { createBody, fileForm } from "../service/running.ts";
import type { Running } from "../service/running.ts";

/** Reading a PDF starts a process, which on a busy machine takes longer than the default test timeout. */
const SLOW = { timeout: 120_000 };

let running: Running;
beforeAll(async () => {
  running = await openAsking(undefined, {}, { ocr: { pagesMax: 0 } });
});
afterAll(() => running.close());

const upload = async (pages: readonly string[][]): Promise<string> => {
  const body = fileForm(buildPdf(pages.map(textPage)), "crane.pdf");
  return (await running.send("POST", "/image/processing/upload", { body })).json.file_url;
};

it.each([
  ["at once", {}],
  ["after its answer", { prefer: "respond-async, wait=30" }],
])("names page, line, digest and file of a PDF that is ingested %s", SLOW, async (_when, headers) => {
  const owner_id = OWNER;
  const url = await upload([["Contents"], [], ["The new crane", "lifts forty tons."]]);
  const body = createBody({ content: undefined, url, title: "Notes", owner_id, settings: { chunkSize: 40 } });
  const made = await running.send("POST", "/api/rag/resource", { body, headers });
  const { _id: id, collectionId } = made.json.data;
  const { content } = (await running.send("GET", `/api/rag/resource/${id}`)).json.data;
  expect(content).toBe("Contents\n\nThe new crane\nlifts forty tons.");
  const text = { sha256: hash("sha256", content), fileUrl: url };
  const position = {
    start: 10,
    end: content.length,
    lines: { first: 3, last: 4 },
    pages: { first: 3, last: 3 },
  };

  const chunks = (await running.send("GET", `/api/rag/resource/${id}/chunks`)).json.data;
  expect(chunks).toMatchObject({ version: 1, ...text });
  expect(chunks.chunks).toMatchObject([
    { start: 0, end: 8, lines: { first: 1, last: 1 }, pages: { first: 1, last: 1 } },
    position,
  ]);
  const query = { query: "forty tons", collection_id: collectionId, owner_id };
  const { results } = (await running.send("POST", "/rag/query", { body: query })).json;
  expect(results).toMatchObject([{ version: 1, payload: { ...position, ...text } }]);

  const { json } = await ask(running, { user: "What does the new crane lift?" });
  expect(json.response.data.annotations).toMatchObject([
    {
      title: "Notes",
      path: "Notes",
      version: 1,
      sha256: text.sha256,
      lines: { first: 3, last: 4 },
      pages: { first: 3, last: 3 },
      span: { start: 10, end: content.length },
    },
  ]);

  // Other chunks of the same text stay on their pages; another file brings its own.
  const put = (change: object): Promise<unknown> =>
    running.send("PUT", `/api/rag/resource/${id}`, { body: change });
  const pages = async (): Promise<unknown> =>
    (await running.send("POST", "/rag/query", { body: query })).json.results[0].payload.pages;
  await put({ settings: { chunkSize: 4000 } });
  expect(await pages()).toEqual({ first: 1, last: 3 });
  await put({ url: await upload([[], ["Still forty tons."]]) });
  expect(await pages()).toEqual({ first: 2, last: 2 });
  await running.send("DELETE", `/api/rag/resource/${id}`);
});

it("names the places of a content that the client sends with it, until another content comes", async () => {
  const content = "## Q1\n\n| Item | Sold |\n| --- | --- |\n| Bolt | 7 |\n| Nut | 9 |";
  const locations = [
    { start: 0, sheet: "Q1" },
    { start: 7, sheet: "Q1", rows: { first: 1, last: 1 } },
    { start: 37, sheet: "Q1", rows: { first: 4, last: 5 } },
  ];
  const settings = { chunkSize: 50, chunkOverlap: 0 };
  for (const headers of [{}, { prefer: "respond-async, wait=30" }]) {
    const body = createBody({ content, locations, settings, title: "Sales" });
    const { _id: id } = (await running.send("POST", "/api/rag/resource", { body, headers })).json.data;
    const chunks = async (): Promise<object[]> =>
      (await running.send("GET", `/api/rag/resource/${id}/chunks`)).json.data.chunks;
    expect(await chunks()).toMatchObject([
      { path: "Sales", locations: [{ sheet: "Q1", rows: { first: 1, last: 4 } }] },
      { path: "Sales > Q1", locations: [{ sheet: "Q1", rows: { first: 5, last: 5 } }] },
    ]);
    const change = { content: "Nothing else", locations: [{ start: 8, slide: 2 }] };
    await running.send("PUT", `/api/rag/resource/${id}`, { body: change, headers });
    expect(await chunks()).toMatchObject([{ locations: [{ slides: { first: 2, last: 2 } }] }]);
    await running.send("PUT", `/api/rag/resource/${id}`, { body: { content: "Other" }, headers });
    expect((await chunks())[0]).not.toHaveProperty("locations");
  }
});

it.each([
  ["beyond the text", { content: "abc", locations: [{ start: 3, page: 1 }] }, "locations[0].start"],
  [
    "that do not ascend",
    {
      content: "abc",
      locations: [
        { start: 1, page: 1 },
        { start: 1, page: 2 },
      ],
    },
    "locations",
  ],
  [
    "whose rows end before they begin",
    { content: "abc", locations: [{ start: 0, rows: { first: 2, last: 1 } }] },
    "locations[0].rows",
  ],
])("refuses locations %s, in a create and in an update", async (_name, body, field) => {
  const { json } = await running.send("POST", "/api/rag/resource", { body: createBody({ content: "a" }) });
  const refused = { error: { code: "invalid_field", field } };
  const create = await running.send("POST", "/api/rag/resource", { body: createBody(body) });
  const update = await running.send("PUT", `/api/rag/resource/${json.data._id}`, { body });
  expect([create.json, update.json]).toMatchObject([refused, refused]);
});

it("refuses locations without the content that they refer to", async () => {
  const { json } = await running.send("POST", "/api/rag/resource", { body: createBody({ content: "a" }) });
  const body = { title: "T", locations: [{ start: 0, page: 1 }] };
  expect((await running.send("PUT", `/api/rag/resource/${json.data._id}`, { body })).json).toMatchObject({
    error: { code: "invalid_field", field: "locations" },
  });
});

it("names lines and digest of content, which has neither pages nor a file", async () => {
  const content = "# Tides\r\n\r\nThe moon pulls the sea.\r\n";
  const made = await running.send("POST", "/api/rag/resource", { body: createBody({ content }) });
  const query = { query: "moon", doc_id: made.json.data._id };
  const { payload } = (await running.send("POST", "/rag/query", { body: query })).json.results[0];
  expect(payload).toMatchObject({ lines: { first: 1, last: 3 }, sha256: hash("sha256", content) });
  expect(payload).not.toHaveProperty("pages");
  expect(payload).not.toHaveProperty("fileUrl");
  expect(content.slice(payload.start, payload.end)).toBe(payload.content);
});

it("the text and the chunks of another version are refused, and those of the current one are returned", async () => {
  const { json } = await running.send("POST", "/api/rag/resource", { body: createBody({ content: "one" }) });
  const at = `/api/rag/resource/${json.data._id}`;
  await running.send("PUT", at, { body: { content: "two" } });
  for (const path of [at, `${at}/chunks`]) {
    expect((await running.send("GET", `${path}?version=2`)).status).toBe(200);
    for (const version of [1, 3])
      expect(await running.send("GET", `${path}?version=${version}`)).toMatchObject({
        status: 410,
        json: { error: { code: "version_gone", field: "version" } },
      });
  }
});

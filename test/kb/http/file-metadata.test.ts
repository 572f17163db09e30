import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { buildPdf, textPage } from "../ingest/extract/pdf-fixture.ts";
import { createBody, fileForm, openRunning, type Running } from "../service/running.ts";

const OWNER = "reader";

/** The first PDF starts a child process. */
vi.setConfig({ testTimeout: 60_000 });

let running: Running;
beforeAll(async () => {
  running = await openRunning();
});
afterAll(() => running.close());

async function upload(pages: readonly string[], author?: string): Promise<string> {
  const bytes = buildPdf(
    pages.map((line) => textPage([line])),
    { author },
  );
  const { json } = await running.send("POST", "/image/processing/upload", { body: fileForm(bytes, "a.pdf") });
  return json.file_url;
}

async function create(url: string, more: object = {}, headers: Record<string, string> = {}): Promise<string> {
  const body = createBody({ content: undefined, url, owner_id: OWNER, ...more });
  const { status, json } = await running.send("POST", "/api/rag/resource", { body, headers });
  expect([201, 202]).toContain(status);
  return json.data._id;
}

async function change(id: string, body: object): Promise<void> {
  const { status } = await running.send("PUT", `/api/rag/resource/${id}`, { body });
  expect(status).toBe(200);
}

async function metadataOf(id: string): Promise<Record<string, unknown>> {
  const { json } = await running.send("GET", `/api/rag/resource/${id}`);
  return json.data.metadata;
}

/** Returns the ids of the documents that a filter finds. */
async function found(id: string, filter: object): Promise<string[]> {
  const body = { query: "tides", doc_id: id, filter };
  const { json } = await running.send("POST", "/rag/query", { body });
  return json.results.map((hit: { payload: { resourceId: string } }) => hit.payload.resourceId);
}

it("states author and pages of a PDF as metadata, for filters", async () => {
  const id = await create(await upload(["The tides.", "More."], "Ann Moor"), { metadata: { lang: "en" } });
  expect(await metadataOf(id)).toEqual({ lang: "en", author: "Ann Moor", pages: 2, status: "chunked" });
  expect(await found(id, { author: "Ann Moor", pages: { gte: 2 } })).toEqual([id]);
  expect(await found(id, { pages: 1 })).toEqual([]);
});

it("keeps a file's own metadata when other metadata is replaced, and lets that override it", async () => {
  const id = await create(await upload(["The tides."], "Ann Moor"));
  await change(id, { metadata: { author: "A. Moor" } });
  expect(await metadataOf(id)).toEqual({ author: "A. Moor", pages: 1, status: "chunked" });
  expect(await found(id, { author: "Ann Moor" })).toEqual([]);
  expect(await found(id, { author: "A. Moor", pages: 1 })).toEqual([id]);
  await change(id, { metadata: {} });
  expect(await found(id, { author: "Ann Moor" })).toEqual([id]);
});

it("replaces a file's own metadata with that of the next file, in the update that names it", async () => {
  const id = await create(await upload(["The tides.", "Two."], "Ann Moor"), { metadata: { lang: "en" } });
  await change(id, { url: await upload(["The tides again."]) });
  expect(await metadataOf(id)).toEqual({ lang: "en", pages: 1, status: "chunked" });
  expect(await found(id, { author: "Ann Moor" })).toEqual([]);
  expect(await found(id, { pages: 1, lang: "en" })).toEqual([id]);
});

it("states a PDF's own metadata when it is read after the answer", async () => {
  const id = await create(await upload(["The tides."], "Ann Moor"), {}, { prefer: "respond-async, wait=20" });
  await expect.poll(() => metadataOf(id)).toMatchObject({ author: "Ann Moor", pages: 1, status: "chunked" });
});

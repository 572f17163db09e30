import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { drawing } from "../ingest/extract/picture-fixture.ts";
import { buildPdf, textPage } from "../ingest/extract/pdf-fixture.ts";
import { createBody, fileForm, openRunning } from "../service/running.ts";
import type { Answered, Running } from "../service/running.ts";

/** Reading a page starts a process with OCR, which on a busy machine takes longer than the default test timeout. */
const SLOW = { timeout: 120_000 };

let running: Running;
beforeAll(async () => {
  running = await openRunning({ ocr: { pagesMax: 1 } });
});
afterAll(() => running.close());

const upload = async (pages: readonly string[][]): Promise<string> => {
  const body = fileForm(buildPdf(pages.map(textPage)), "a.pdf");
  return (await running.send("POST", "/image/processing/upload", { body })).json.file_url;
};

it("warns about a partly read document until another text replaces it", SLOW, async () => {
  const url = await upload([["Typed words."], [], [], []]);
  const body = createBody({ content: undefined, url, owner_id: "ann" });
  const { json } = await running.send("POST", "/api/rag/resource", { body });
  const { _id: id, collectionId } = json.data;
  const put = (change: object): Promise<Answered> =>
    running.send("PUT", `/api/rag/resource/${id}`, { body: change });
  const list = `/api/rag/resource/by-collection?collectionId=${collectionId}&ownerId=ann`;
  const partly = { status: "chunked", pages: 4, warning: expect.stringContaining("Pages 3–4 were not read") };

  expect((await running.send("GET", `/api/rag/resource/${id}`)).json.data).toMatchObject({
    content: "Typed words.",
    metadata: partly,
  });
  expect((await running.send("GET", list)).json.data.resources[0].metadata).toEqual(partly);
  // Neither a new title nor new chunks complete it.
  expect((await put({ title: "Other" })).json.data.metadata).toEqual(partly);
  expect((await put({ settings: { chunkSize: 500 } })).json.data.metadata).toEqual(partly);
  expect((await put({ metadata: { warning: "mine" } })).json.error).toMatchObject({
    code: "invalid_field",
    field: "metadata.warning",
  });
  const whole = await put({ url: await upload([["All words."]]) });
  expect(whole.json.data.metadata).toEqual({ status: "chunked", pages: 1 });
});

it("warns about a partly read document that is ingested after the answer", SLOW, async () => {
  const url = await upload([["Typed words."], [], []]);
  const made = await running.send("POST", "/api/rag/resource", {
    body: createBody({ content: undefined, url }),
    headers: { prefer: "respond-async" },
  });
  expect(made.status).toBe(202);
  await vi.waitFor(async () => {
    const { json } = await running.send("GET", `/api/rag/resource/${made.json.data._id}`);
    expect(json.data.metadata.warning).toContain("Page 3 was not read: 2 pages have no text layer");
  }, SLOW);
});

it("ingests a drawing without the words recognised in it, and warns about that", SLOW, async () => {
  const form = fileForm(await drawing().png().toBuffer(), "drawing.png");
  const { file_url: url } = (await running.send("POST", "/image/processing/upload", { body: form })).json;
  const body = createBody({ content: undefined, url, owner_id: "draughtsman" });
  const made = await running.send("POST", "/api/rag/resource", { body });
  expect(made.status).toBe(201);
  const metadata = { status: "chunked", warning: expect.stringContaining("Page 1 was left out") };
  expect(made.json.data.metadata).toEqual(metadata);
  const { data } = (await running.send("GET", `/api/rag/resource/${made.json.data._id}`)).json;
  expect(data).toMatchObject({ content: "", metadata });
  const { data: found } = (await running.send("GET", `/api/rag/resource/${data._id}/chunks`)).json;
  expect(found.chunks).toEqual([]);
});

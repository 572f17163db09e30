import { once } from "node:events";
import { afterAll, beforeAll, beforeEach, expect, it, vi } from "vitest";
import { codeOf } from "../../../src/lib/failure.ts";
import type { ReadOptions } from "../../../src/kb/ingest/extract/ocr.ts";
import { fileForm, createBody, openRunning, type Running } from "../service/running.ts";

const WAIT = { timeout: 30_000, interval: 20 };
const ASYNC = { prefer: "respond-async" };
const PNG = Buffer.from("89504e470d0a1a0a0000000d49484452", "hex");

/** The recogniser never ends the first read of a test by itself. */
const recogniser = vi.hoisted(() => ({ reads: 0, stoppedBy: undefined as unknown }));
vi.mock("../../../src/kb/ingest/extract/ocr.ts", async (original) => {
  const readImageText = async (_path: string, _type: string, { signal }: ReadOptions): Promise<object> => {
    recogniser.reads += 1;
    if (recogniser.reads > 1) return { pages: [], unread: [] };
    await (signal === undefined ? new Promise(() => undefined) : once(signal, "abort"));
    recogniser.stoppedBy = signal?.reason;
    throw signal?.reason;
  };
  const fake = { pagesMax: 100, readImageText, close: () => undefined };
  return { ...(await original<object>()), openOcr: () => fake };
});

let running: Running;
beforeAll(async () => {
  running = await openRunning();
});
afterAll(() => running.close());
beforeEach(() => {
  recogniser.reads = 0;
  recogniser.stoppedBy = undefined;
});

const isStopped = (): Promise<void> =>
  vi.waitFor(() => expect(codeOf(recogniser.stoppedBy)).toBe("lease_lost"), WAIT);

async function upload(bytes: string | Uint8Array, name: string): Promise<string> {
  const uploaded = await running.send("POST", "/image/processing/upload", { body: fileForm(bytes, name) });
  return uploaded.json.file_url;
}

/** Queues a picture, and waits until it is being read. */
async function beginRead(): Promise<string> {
  const body = createBody({ content: undefined, url: await upload(PNG, "a.png") });
  const { json } = await running.send("POST", "/api/rag/resource", { body, headers: ASYNC });
  await vi.waitFor(() => expect(recogniser.reads).toBe(1), WAIT);
  return json.data._id;
}

it("a newer version stops the read of an older one, and is read at once", async () => {
  const id = await beginRead();
  const body = { url: await upload("Corrected words.", "a.txt") };
  await running.send("PUT", `/api/rag/resource/${id}`, { body, headers: ASYNC });
  await vi.waitFor(async () => {
    const { json } = await running.send("GET", `/api/rag/resource/${id}`);
    expect(json.data).toMatchObject({ content: "Corrected words.", metadata: { status: "chunked" } });
  }, WAIT);
  await isStopped();
});

it("a delete stops the read of the document", async () => {
  const id = await beginRead();
  expect((await running.send("DELETE", `/api/rag/resource/${id}`)).status).toBe(200);
  await isStopped();
});

it("an erasure stops the read of the document, and does not wait for its end", async () => {
  const id = await beginRead();
  expect((await running.send("DELETE", `/api/rag/resource/${id}?purge=true`)).status).toBe(200);
  await isStopped();
});

import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { buildPdf, textPage } from "../ingest/extract/pdf-fixture.ts";
import { createBody, fileForm, openRunning, type Running } from "../service/running.ts";

const WAIT = { timeout: 60_000, interval: 50 };
/** More than one account's documents may wait without a slot, by more than the account has slots. */
const SCANS = 720;
const WAITING = 675;

/** The OCR engine: it has started on this many documents, and completes none before `resolve`. */
const recogniser = vi.hoisted(() => ({ started: 0, ...Promise.withResolvers<void>() }));
vi.mock("../../../src/kb/ingest/extract/ocr.ts", async (original) => {
  const read = async (): Promise<object> => {
    recogniser.started += 1;
    await recogniser.promise;
    return { pages: [], unread: [] };
  };
  const fake = { pagesMax: 100, readImageText: read, readPages: read, close: () => undefined };
  return { ...(await original<object>()), openOcr: () => fake };
});

let running: Running;
beforeAll(async () => {
  running = await openRunning();
});
afterAll(() => running.close());

async function upload(bytes: string | Uint8Array, name: string): Promise<string> {
  const uploaded = await running.send("POST", "/image/processing/upload", { body: fileForm(bytes, name) });
  return uploaded.json.file_url;
}

/** Queues an uploaded file as a background job; returns the id of its resource. */
async function queue(url: string): Promise<string> {
  const made = await running.send("POST", "/api/rag/resource", {
    body: createBody({ owner_id: "scans", content: undefined, url }),
    headers: { prefer: "respond-async" },
  });
  expect(made.status).toBe(202);
  return made.json.data._id;
}

async function statusOf(id: string): Promise<string> {
  return (await running.send("GET", `/api/rag/resource/${id}`)).json.data.metadata.status;
}

/** Asks one after another: one address may not have so many connections. */
async function statesOf(ids: readonly string[]): Promise<ReadonlySet<string>> {
  const states = new Set<string>();
  for (const id of ids) states.add(await statusOf(id));
  return states;
}

it(
  "documents that wait for text recognition delay no other documents, however many wait",
  { timeout: 120_000 },
  async () => {
    const image = Buffer.from("89504e470d0a1a0a0000000d49484452", "hex");
    // All are uploaded before the first of them waits: the service then slows the account's uploads down.
    const files = [await upload(buildPdf([textPage(["typed"]), textPage([])]), "scan.pdf")];
    for (let at = 1; at < SCANS; at++) files.push(await upload(image, `${at}.png`));
    const scans: string[] = [];
    for (const url of files) scans.push(await queue(url));
    await vi.waitFor(() => expect(recogniser.started).toBe(WAITING), WAIT);
    const note = await queue(await upload("Typed words.", "note.txt"));
    await vi.waitFor(async () => expect(await statusOf(note)).toBe("chunked"), WAIT);
    // The typed page of the first is found without its other page.
    await vi.waitFor(async () => expect(await statusOf(scans[0] ?? "")).toBe("chunked"), WAIT);
    expect(await statesOf(scans.slice(1))).toEqual(new Set(["queued"]));
    recogniser.resolve();
    await vi.waitFor(async () => expect(await statusOf(scans[0] ?? "")).toBe("chunked"), WAIT);
    // These pictures contain no text.
    await vi.waitFor(async () => expect(await statesOf(scans.slice(1))).toEqual(new Set(["error"])), WAIT);
  },
);

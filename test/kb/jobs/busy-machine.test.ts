import { afterAll, beforeAll, beforeEach, expect, it, vi } from "vitest";
import { ocrError } from "../../../src/kb/ingest/extract/ocr-error.ts";
import type { ReadOptions } from "../../../src/kb/ingest/extract/ocr.ts";
import { createBody, fileForm, openRunning, type Running } from "../service/running.ts";

const WAIT = { timeout: 30_000, interval: 20 };
const PNG = Buffer.from("89504e470d0a1a0a0000000d49484452", "hex");
/** More tries than other temporary failures get. */
const BUSY_TIMES = 18;

/** The recogniser of a machine that is busy, or has no process, the next `busyTimes`. */
const recogniser = vi.hoisted(() => ({
  busyTimes: 0,
  end: "busy" as "busy" | "unable",
  lanes: [] as (string | undefined)[],
}));
vi.mock("../../../src/kb/ingest/extract/ocr.ts", async (original) => {
  const readImageText = async (path: string, _type: string, { lane }: ReadOptions = {}): Promise<object> => {
    recogniser.lanes.push(lane);
    recogniser.busyTimes -= 1;
    if (recogniser.busyTimes < 0) return Promise.resolve({ pages: [], unread: [] });
    const request = { path, pixelsMax: 1, pagesMax: 1 };
    throw ocrError(recogniser.end, request, { memoryMb: 1 }, "got 6 s of processor time in 1800 s");
  };
  const fake = { pagesMax: 100, readImageText, close: () => undefined };
  return { ...(await original<object>()), openOcr: () => fake };
});

let running: Running;
/** How far the service's clock is ahead, in ms. */
let aheadMs = 0;
let url = "";
beforeAll(async () => {
  running = await openRunning({ nowMs: () => Date.now() + aheadMs });
  const uploaded = await running.send("POST", "/image/processing/upload", { body: fileForm(PNG, "a.png") });
  url = uploaded.json.file_url;
});
afterAll(() => running.close());
beforeEach(() => {
  recogniser.lanes = [];
  recogniser.end = "busy";
});

function create(change: object, headers: Record<string, string> = {}) {
  return running.send("POST", "/api/rag/resource", { body: createBody(change), headers });
}

it("a queued file is tried until the machine is no longer busy, in the lane of the backlog", async () => {
  recogniser.busyTimes = BUSY_TIMES;
  const made = await create({ content: undefined, url }, { prefer: "respond-async" });
  const id: string = made.json.data._id;
  for (let tries = 1; tries <= BUSY_TIMES; tries++) {
    await vi.waitFor(() => expect(recogniser.lanes.length).toBeGreaterThanOrEqual(tries), WAIT);
    expect((await running.send("GET", `/api/rag/resource/${id}`)).json.data.metadata.status).toBe("queued");
    await vi.waitFor(async () => {
      aheadMs += 10 * 60_000;
      // Another job wakes the queue.
      await create({}, { prefer: "respond-async" });
      expect(recogniser.lanes.length).toBeGreaterThan(tries);
    }, WAIT);
  }
  // The picture holds no text, which only a read that ended can say.
  await vi.waitFor(async () => {
    const { json } = await running.send("GET", `/api/rag/resource/${id}`);
    expect(json.data.metadata).toMatchObject({ status: "error", error: "image_without_text" });
  }, WAIT);
  expect(new Set(recogniser.lanes)).toEqual(new Set(["backlog"]));
}, 120_000);

it("a client that waits is told to try again, in a lane of its own", async () => {
  recogniser.busyTimes = 1;
  const refused = await create({ content: undefined, url });
  expect(refused.status).toBe(429);
  expect(refused.headers["retry-after"]).toBe("5");
  expect(refused.json.error).toMatchObject({ code: "extractor_busy" });
  expect(refused.json.message).toContain(
    "Recognising text got 6 s of processor time in 1800 s: this machine is too busy",
  );
  expect((await create({ content: undefined, url })).json.error).toMatchObject({
    code: "image_without_text",
  });
  expect(recogniser.lanes).toEqual(["client", "client"]);
});

it("times when the machine was busy do not use up the tries of a file", async () => {
  recogniser.busyTimes = Infinity;
  const made = await create({ content: undefined, url }, { prefer: "respond-async" });
  const id: string = made.json.data._id;
  const tryAgain = async (tries: number): Promise<void> =>
    await vi.waitFor(async () => {
      aheadMs += 10 * 60_000;
      await create({}, { prefer: "respond-async" });
      expect(recogniser.lanes.length).toBeGreaterThanOrEqual(tries);
    }, WAIT);
  await tryAgain(BUSY_TIMES);
  recogniser.end = "unable";
  await tryAgain(BUSY_TIMES + 5);
  const { json } = await running.send("GET", `/api/rag/resource/${id}`);
  expect(json.data.metadata.status).toBe("queued");
  await tryAgain(BUSY_TIMES + 16);
  await vi.waitFor(async () => {
    const failed = await running.send("GET", `/api/rag/resource/${id}`);
    expect(failed.json.data.metadata).toMatchObject({ status: "error", error: "extraction_failed" });
  }, WAIT);
}, 120_000);

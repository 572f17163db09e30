import { afterAll, beforeAll, beforeEach, expect, it, vi } from "vitest";
import { ocrError } from "../../../src/kb/ingest/extract/ocr-error.ts";
import type { ReadOptions } from "../../../src/kb/ingest/extract/ocr.ts";
import { createBody, fileForm, openRunning, type Running } from "../service/running.ts";

const WAIT = { timeout: 30_000, interval: 20 };
const PNG = Buffer.from("89504e470d0a1a0a0000000d49484452", "hex");
/** More tries than other temporary failures get. */
const BUSY_TIMES = 18;
/** Fewer tries than these get. */
const OTHER_TIMES = 5;

/** The recogniser of a machine that is busy, or has no process, the next `busyTimes`. */
const recogniser = vi.hoisted(() => ({
  busyTimes: 0,
  end: "busy" as "busy" | "unable",
  lanes: [] as (string | undefined)[],
}));
vi.mock("../../../src/kb/ingest/extract/ocr.ts", async (original) => {
  const readImageText = async (path: string, _type: string, { lane }: ReadOptions): Promise<object> => {
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

it("a queued file is tried until the machine is no longer busy, in the lane of the backlog, whatever else fails", async () => {
  recogniser.busyTimes = Infinity;
  const made = await create({ content: undefined, url }, { prefer: "respond-async" });
  const metadata = async () =>
    (await running.send("GET", `/api/rag/resource/${made.json.data._id}`)).json.data.metadata;
  const becomesTried = (times: number): Promise<void> =>
    vi.waitFor(async () => {
      aheadMs += 10 * 60_000;
      // Another job wakes the queue.
      await create({}, { prefer: "respond-async" });
      expect(recogniser.lanes.length).toBeGreaterThanOrEqual(times);
    }, WAIT);
  await becomesTried(BUSY_TIMES);
  recogniser.end = "unable";
  await becomesTried(BUSY_TIMES + OTHER_TIMES);
  expect((await metadata()).status).toBe("queued");
  recogniser.busyTimes = 0;
  await becomesTried(BUSY_TIMES + OTHER_TIMES + 1);
  // The picture holds no text, which only a read that ended can say.
  await vi.waitFor(
    async () => expect(await metadata()).toMatchObject({ status: "error", error: "image_without_text" }),
    WAIT,
  );
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

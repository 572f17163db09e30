import { afterAll, beforeAll, expect, it, vi } from "vitest";
import type { ReadOptions } from "../../../src/kb/ingest/extract/ocr.ts";
import { openReceiver, type Receiver } from "../webhooks/receiver.ts";
import { fileForm, type Running } from "../service/running.ts";
import { CHAT, openAsking } from "./asking.ts";

// Questions with images of one account do not delay other accounts.

const WAIT = { timeout: 60_000, interval: 20 };
const PNG = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=",
  "base64",
);
/** Questions of one account that wait: more than are answered and wait at once, and more than are read of the queue. */
const QUESTIONS = 200;

/** The recogniser: it is done with the images of the first account that asks when `released`, with others at once. */
const recogniser = vi.hoisted(() => ({
  slow: "",
  started: 0,
  lanes: new Set<string>(),
  ...Promise.withResolvers<void>(),
}));
vi.mock("../../../src/kb/ingest/extract/ocr.ts", async (original) => {
  const readImage = async (_path: string, _type: string, { tenant, lane }: ReadOptions): Promise<object> => {
    const [account = "nobody"] = tenant ?? [];
    recogniser.slow ||= account;
    recogniser.started += 1;
    recogniser.lanes.add(lane);
    if (account === recogniser.slow) await recogniser.promise;
    return { pages: [], unread: [] };
  };
  const fake = { pagesMax: 100, readImage, close: () => undefined };
  return { ...(await original<object>()), openOcr: () => fake };
});

let running: Running;
let receiver: Receiver;
beforeAll(async () => {
  receiver = await openReceiver();
  running = await openAsking(undefined, { defaultKnowledge: () => [] });
});
afterAll(async () => {
  recogniser.resolve();
  await running.close();
  await receiver.close();
});

/** Asks about an image of the account that was uploaded. */
async function asker(key: string) {
  const upload = await running.send("POST", "/image/processing/upload", {
    key,
    body: fileForm(PNG, "a.png"),
  });
  const body = {
    agent_id: "default",
    user: "What is this?",
    user_urls: [{ type: "image", url: upload.json.file_url }],
  };
  return (change: object = {}) => running.send("POST", CHAT, { key, body: { ...body, ...change } });
}

it(
  "one account's questions about images delay no other account, with or without a webhook",
  { timeout: 120_000 },
  async () => {
    const busy = await asker(running.key);
    for (let at = 0; at < QUESTIONS; at += 1)
      expect((await busy({ webhook: { url: `${receiver.url}/busy` } })).status).toBe(202);
    await vi.waitFor(() => expect(recogniser.started).toBe(4), WAIT);
    const asked = Array.from({ length: 40 }, () => busy());
    await vi.waitFor(() => expect(recogniser.started).toBe(16), WAIT);
    const quiet = await asker(await running.issueKey("quiet"));
    expect((await quiet()).status).toBe(200);
    expect((await quiet({ webhook: { url: `${receiver.url}/quiet` } })).status).toBe(202);
    await vi.waitFor(() => expect(receiver.messages.map(({ path }) => path)).toEqual(["/quiet"]), WAIT);
    recogniser.resolve();
    expect(new Set((await Promise.all(asked)).map(({ status }) => status))).toEqual(new Set([200]));
    await vi.waitFor(() => expect(receiver.messages).toHaveLength(QUESTIONS + 1), WAIT);
    // No backlog of documents delays an answer.
    expect([...recogniser.lanes]).toEqual(["client"]);
  },
);

import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { Agent, request } from "undici";
import { openRunning, type Running } from "../../service/running.ts";

let running: Running;
const agent = new Agent();
beforeAll(async () => {
  running = await openRunning();
});
afterAll(async () => {
  await agent.destroy();
  await running.close();
});

/** Opens a stream of events; `text` grows as they arrive, and `ended` resolves with all of it. */
async function open(of: Running, key: string) {
  const stop = new AbortController();
  const { statusCode, body } = await request(`${of.url}/v1/events`, {
    dispatcher: agent,
    headers: { accept: "text/event-stream", pauthkey: key },
    signal: stop.signal,
  });
  const stream = { statusCode, text: "", ended: Promise.resolve(""), stop: () => stop.abort() };
  stream.ended = (async () => {
    try {
      for await (const piece of body) stream.text += String(piece);
    } catch {
      // The test stops it.
    }
    return stream.text;
  })();
  return stream;
}

describe("the events of an account", () => {
  it("the events of an account end with the reason when the key is no longer valid", async () => {
    const expiresAt = new Date(Date.now() + 1500).toISOString();
    const key = await running.issueKey("ended", ["read"], expiresAt);
    const stream = await open(running, key);
    expect(await stream.ended).toMatch(/event: error\ndata: .*"key_expired"/);
  }, 20_000);

  it("the events of an account end at once when the service closes", async () => {
    const closing = await openRunning();
    try {
      const stream = await open(closing, closing.key);
      await vi.waitFor(() => expect(stream.text).toContain("event: state"), { timeout: 10_000 });
      await closing.service.close();
      expect(await stream.ended).not.toContain("event: error");
      expect(closing.log()).not.toContain("closing with requests in flight");
    } finally {
      await closing.close();
    }
  });

  it("leaves streams to other accounts if one opens as many as it can", async () => {
    const key = await running.issueKey("greedy", ["read"]);
    const streams = await Promise.all(Array.from({ length: 260 }, () => open(running, key)));
    expect(streams.filter(({ statusCode }) => statusCode === 503).length).toBeGreaterThan(0);
    const other = await open(running, running.key);
    expect(other.statusCode).toBe(200);
    for (const stream of [...streams, other]) stream.stop();
  }, 30_000);
});

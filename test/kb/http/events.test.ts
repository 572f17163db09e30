import { Agent, request } from "undici";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { createBody, openRunning, type Running } from "../service/running.ts";

let running: Running;
const agent = new Agent();
beforeAll(async () => {
  running = await openRunning();
});
afterAll(async () => {
  await agent.destroy();
  await running.close();
});

const create = async (key: string): Promise<string> =>
  (await running.send("POST", "/api/rag/resource", { key, body: createBody({}) })).json.data._id;

/** Opens a stream; `text` grows as events arrive. */
async function openStream(key: string, headers: Record<string, string> = {}) {
  const stop = new AbortController();
  const { statusCode, body } = await request(`${running.url}/v1/events`, {
    dispatcher: agent,
    headers: { accept: "text/event-stream", pauthkey: key, ...headers },
    signal: stop.signal,
  });
  const stream = { statusCode, text: "", isOver: false, stop: () => stop.abort() };
  void (async () => {
    try {
      for await (const piece of body) stream.text += String(piece);
    } catch {
      // The test stops it.
    }
    stream.isOver = true;
  })();
  return stream;
}

/** The data of the events of a name so far. */
function dataOf(text: string, name: string) {
  return [...text.matchAll(new RegExp(`event: ${name}\\ndata: (.*)\\n\\n`, "g"))].map(([, data]) =>
    JSON.parse(data ?? ""),
  );
}

describe("the events of an account", () => {
  it("the events of an account begin with its numbers, and follow every change of its documents alone", async () => {
    const [key, other] = [
      await running.issueKey("events", ["read", "write"]),
      await running.issueKey("elsewhere"),
    ];
    await create(key);
    const stream = await openStream(key);
    await vi.waitFor(() => expect(dataOf(stream.text, "state")).toHaveLength(1), { timeout: 10_000 });
    /** Documents by the last state. */
    const documents = (): number =>
      dataOf(stream.text, "state")
        .at(-1)
        .collections.reduce((sum: number, each: { resources: number }) => sum + each.resources, 0);
    expect(documents()).toBe(1);
    expect(dataOf(stream.text, "state")[0].queues.ingest).toEqual({ waiting: 0, oldestAt: null, failed: 0 });
    expect(dataOf(stream.text, "change")).toEqual([]);
    await create(other);
    const id = await create(key);
    // The numbers are as new as the moment they are read in, which may be before the change is sent.
    await vi.waitFor(() => expect(dataOf(stream.text, "change")).toHaveLength(1), { timeout: 10_000 });
    await vi.waitFor(() => expect(documents()).toBe(2), { timeout: 10_000 });
    expect(dataOf(stream.text, "change").map((change) => change._id)).toEqual([id]);
    stream.stop();
  });

  it("the events of an account continue after the last event that a client received", async () => {
    const key = await running.issueKey("resumed", ["read", "write"]);
    await create(key);
    const cursor = (await running.send("GET", "/v1/changes?cursor=now", { key })).json.data.cursor;
    const missed = await create(key);
    const stream = await openStream(key, { "last-event-id": cursor });
    await vi.waitFor(() => expect(dataOf(stream.text, "change")).toHaveLength(1), { timeout: 10_000 });
    expect(dataOf(stream.text, "change")[0]._id).toBe(missed);
    stream.stop();
  });

  it("the events of an account refuse an id that is not known here, and a key without the scope", async () => {
    const key = await running.issueKey("refused", ["read"]);
    expect((await openStream(key, { "last-event-id": "9-000000000000" })).statusCode).toBe(410);
    expect((await openStream(await running.issueKey("refused", ["chat"]))).statusCode).toBe(403);
  });

  it("the events of an account refuse HEAD, and answer HEAD of the changes, instead of sending nothing without end", async () => {
    const headers = { accept: "text/event-stream" };
    expect((await running.send("HEAD", "/v1/events", { headers })).status).toBe(405);
    expect((await running.send("HEAD", "/v1/changes", { headers })).status).toBe(200);
  });

  it("the events of an account end with the reason when the key is revoked", async () => {
    const admin = await running.issueKey("ended", ["admin"]);
    const made = await running.send("POST", "/v1/keys", {
      key: admin,
      body: { name: "x", scopes: ["read"] },
    });
    const stream = await openStream(made.json.data.key);
    await vi.waitFor(() => expect(dataOf(stream.text, "state")).toHaveLength(1), { timeout: 10_000 });
    await running.send("DELETE", `/v1/keys/${made.json.data._id}`, { key: admin });
    await vi.waitFor(() => expect(stream.isOver).toBe(true), { timeout: 15_000 });
    expect(dataOf(stream.text, "error")[0].error.code).toBe("key_unknown");
  });

  it("the events of an account end when the key is revoked while documents change without a pause", async () => {
    const [admin, writer] = [
      await running.issueKey("busy", ["admin"]),
      await running.issueKey("busy", ["write"]),
    ];
    const made = await running.send("POST", "/v1/keys", {
      key: admin,
      body: { name: "x", scopes: ["read"] },
    });
    const stream = await openStream(made.json.data.key);
    await running.send("DELETE", `/v1/keys/${made.json.data._id}`, { key: admin });
    // A stream that checks its key only when nothing changes ends when no document is created any more.
    const endMs = performance.now() + 12_000;
    while (!stream.isOver && performance.now() < endMs) {
      const id = await create(writer);
      await vi.waitFor(() => expect(stream.isOver || stream.text.includes(id)).toBe(true), 10_000);
    }
    expect(stream.isOver).toBe(true);
    expect(dataOf(stream.text, "error")[0].error.code).toBe("key_unknown");
  });
});

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
async function openStream(key: string) {
  const stop = new AbortController();
  const { statusCode, body } = await request(`${running.url}/v1/events`, {
    dispatcher: agent,
    headers: { accept: "text/event-stream", pauthkey: key },
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
  it("the events of an account begin with its numbers, and send them again after every change of its documents alone", async () => {
    const [key, other] = [
      await running.issueKey("events", ["read", "write"]),
      await running.issueKey("elsewhere"),
    ];
    const id = await create(key);
    const stream = await openStream(key);
    const states = () => dataOf(stream.text, "state");
    await vi.waitFor(() => expect(states()).toHaveLength(1), { timeout: 10_000 });
    /** Documents by the last state. */
    const documents = (): number =>
      states()
        .at(-1)
        .collections.reduce((sum: number, each: { resources: number }) => sum + each.resources, 0);
    expect(documents()).toBe(1);
    expect(states()[0].queues.ingest).toEqual({ waiting: 0, oldestAt: null, failed: 0 });
    await create(other);
    await create(key);
    await vi.waitFor(() => expect(documents()).toBe(2), { timeout: 10_000 });
    const before = states().length;
    // A title changes no number.
    await running.send("PUT", `/api/rag/resource/${id}`, { key, body: { title: "Ebb" } });
    await vi.waitFor(() => expect(states().length).toBeGreaterThan(before), { timeout: 10_000 });
    stream.stop();
  });

  it("the events of an account refuse a key without the scope", async () => {
    expect((await openStream(await running.issueKey("refused", ["chat"]))).statusCode).toBe(403);
  });

  it("the events of an account refuse HEAD instead of sending nothing without end", async () => {
    const headers = { accept: "text/event-stream" };
    expect((await running.send("HEAD", "/v1/events", { headers })).status).toBe(405);
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
      await create(writer);
    }
    expect(stream.isOver).toBe(true);
    expect(dataOf(stream.text, "error")[0].error.code).toBe("key_unknown");
  });
});

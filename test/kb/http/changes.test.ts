import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { Agent, request } from "undici";
import { NOW } from "../../../src/wire/changes.ts";
import { createBody, openRunning, type Running } from "../service/running.ts";
import { openChangeStream, type Received } from "./streams/change-stream.ts";

let running: Running;
const agent = new Agent();
beforeAll(async () => {
  running = await openRunning();
});
afterAll(async () => {
  await agent.destroy();
  await running.close();
});

const create = async (change: object = {}, key?: string): Promise<string> => {
  const { json } = await running.send("POST", "/api/rag/resource", {
    body: createBody(change),
    ...(key && { key }),
  });
  return json.data._id;
};
const read = (query: string, key?: string) =>
  running.send("GET", `/v1/changes?${query}`, key === undefined ? {} : { key });
const newest = async (key?: string): Promise<string> => (await read(`cursor=${NOW}`, key)).json.data.cursor;

const openStream = (query: string, headers?: Record<string, string>, key?: string) =>
  openChangeStream(running, agent, query, headers, key);

describe("GET /v1/changes", () => {
  it("pages through the changes from any cursor", async () => {
    const cursor = await newest();
    const ids = [await create({ metadata: { path: "a/b.md" } }), await create(), await create()];
    const first = (await read(`cursor=${cursor}&limit=2`)).json.data;
    expect(first).toMatchObject({
      changes: [
        { type: "document.created", _id: ids[0], path: "a/b.md", version: 1, status: "chunked" },
        { type: "document.created", _id: ids[1], path: null },
      ],
      more: true,
    });
    const second = (await read(`cursor=${first.cursor}&limit=2`)).json.data;
    expect(second).toMatchObject({ changes: [{ _id: ids[2] }], more: false });
    expect((await read(`cursor=${second.cursor}`)).json.data).toEqual({
      changes: [],
      cursor: second.cursor,
      more: false,
    });
  });

  it("answers 410 for a cursor that it does not know, with what to do", async () => {
    const { status, json } = await read("cursor=9-000000000000");
    expect({ status, error: json.error }).toMatchObject({
      status: 410,
      error: { code: "cursor_expired", field: "cursor" },
    });
    const stream = await openStream("cursor=9-000000000000");
    expect(stream.statusCode).toBe(410);
  });
});

describe("the stream of changes", () => {
  it("the stream of changes has what was made before and what is made while it is open, each once", async () => {
    const key = await running.issueKey("streams", ["read", "write"]);
    const before = await create({}, key);
    const stream = await openStream("", {}, key);
    const after = await create({}, key);
    await vi.waitFor(() => expect(stream.events).toHaveLength(3), { timeout: 10_000 });
    expect(stream.events[0]).toEqual({ id: undefined, event: "ready", data: { cursor: null } });
    expect(stream.events.slice(1).map(({ event, data }) => [event, data._id])).toEqual([
      ["change", before],
      ["change", after],
    ]);
    stream.stop();
  });

  it("continues after the last event that a client received", async () => {
    const key = await running.issueKey("resumed", ["read", "write"]);
    for (let made = 0; made < 3; made += 1) await create({}, key);
    const { changes } = (await read("", key)).json.data;
    const lastId: string = changes[0].cursor;
    const stream = await openStream(`cursor=${NOW}`, { "last-event-id": lastId }, key);
    await vi.waitFor(() => expect(stream.events).toHaveLength(3), { timeout: 10_000 });
    expect(stream.events.map(({ id }) => id)).toEqual([lastId, changes[1].cursor, changes[2].cursor]);
    stream.stop();
  });

  it("loses and repeats nothing for a reader that is cut off at any time while documents change", async () => {
    const key = await running.issueKey("cut off", ["read", "write"]);
    const made: string[] = [];
    const writing = (async () => {
      for (let count = 0; count < 60; count += 1) made.push(await create({}, key));
    })();
    const received: Received[] = [];
    for (let round = 0; received.length < 60; round += 1) {
      const headers = received.length === 0 ? {} : { "last-event-id": received.at(-1)?.id ?? "" };
      const stream = await openStream("", headers, key);
      await new Promise((resolve) => setTimeout(resolve, 10 + 15 * (round % 7)));
      stream.stop();
      received.push(...stream.events.filter(({ event }) => event === "change"));
    }
    await writing;
    expect(received.map(({ data }) => data._id)).toEqual(made);
  });

  it("the stream of changes ends at once when the service closes", async () => {
    const closing = await openRunning();
    try {
      const { body } = await request(`${closing.url}/v1/changes`, {
        dispatcher: agent,
        headers: { accept: "text/event-stream", pauthkey: closing.key },
      });
      const received = body.text();
      await closing.service.close();
      expect(await received).toContain("event: ready");
      expect(closing.log()).not.toContain("closing with requests in flight");
    } finally {
      await closing.close();
    }
  });
});

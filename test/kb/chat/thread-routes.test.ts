import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openModelEndpoint, type ModelEndpoint } from "../../fakes/model-endpoint.ts";
import type { Answered, Running } from "../service/running.ts";
import { ask, openAsking, remember } from "./asking.ts";

let endpoint: ModelEndpoint;
let running: Running;
let admin: string;
let nowMs = Date.parse("2026-05-01T10:00:00.000Z");
beforeAll(async () => {
  endpoint = await openModelEndpoint();
  endpoint.behave = () => ({ kind: "answer", text: "Forty tons. [1]" });
  running = await openAsking(endpoint, {}, { nowMs: () => nowMs });
  admin = await running.issueKey("local", ["admin"]);
  await remember(running, "# Cranes\n\nThe new crane lifts forty tons.");
});
afterAll(async () => {
  await running.close();
  await endpoint.close();
});

const send = (method: string, path: string, query: Record<string, string>, key = admin): Promise<Answered> =>
  running.send(method, `/v1/threads${path}?${new URLSearchParams(query).toString()}`, { key });
const list = (query: Record<string, string> = {}): Promise<Answered> =>
  send("GET", "", { agent_id: "default", ...query });
const turnsOf = (thread_id: string, query: Record<string, string> = {}, key = admin): Promise<Answered> =>
  send("GET", "/turns", { agent_id: "default", thread_id, ...query }, key);
const say = async (thread_id: string, user: string): Promise<void> => {
  nowMs += 1000;
  expect((await ask(running, { user, thread_id })).status).toBe(200);
};

describe("threads", () => {
  it("threads are listed in pages, the last used first, with their first question", async () => {
    for (const id of ["a", "b", "c"]) await say(id, `What does the crane lift, ${id}?`);
    await say("a", "And the old one?");
    const first = (await list({ limit: "2" })).json.data;
    expect(first.threads).toEqual([
      {
        thread_id: "a",
        question: "What does the crane lift, a?",
        turns: 2,
        usedAt: new Date(nowMs).toISOString(),
      },
      expect.objectContaining({ thread_id: "c", turns: 1 }),
    ]);
    const rest = (await list({ limit: "2", cursor: first.nextCursor })).json.data;
    expect(rest).toMatchObject({ threads: [{ thread_id: "b" }], nextCursor: null });
    expect((await send("GET", "", { agent_id: "nobody" })).json.data.threads).toEqual([]);
  });

  it("threads show their turns with the sources of each answer, the newest page first", async () => {
    for (const user of ["one", "What does the crane lift?"]) await say("read", user);
    const newest = (await turnsOf("read", { limit: "1" })).json.data;
    const [turn] = newest.turns;
    expect(turn).toMatchObject({
      user: "What does the crane lift?",
      content: "Forty tons. [1]",
      model: "seeing-2026",
      images: [],
      createdAt: new Date(nowMs).toISOString(),
    });
    expect(turn.annotations).toMatchObject([{ type: "citation", number: 1, title: "Harbour" }]);
    const older = (await turnsOf("read", { limit: "1", cursor: newest.nextCursor })).json.data;
    expect(older).toMatchObject({ turns: [{ user: "one" }], nextCursor: null });
  });

  it("threads are forgotten when they are deleted, and their ids start over", async () => {
    await say("gone/.. %", "I am Ada.");
    const name = { agent_id: "default", thread_id: "gone/.. %" };
    expect(await send("DELETE", "", name)).toMatchObject({ status: 200, json: { data: name } });
    for (const answer of [await send("DELETE", "", name), await turnsOf(name.thread_id)]) {
      expect(answer).toMatchObject({ status: 404, json: { error: { code: "thread_not_found" } } });
    }
    await say(name.thread_id, "Who am I?");
    expect(JSON.stringify(endpoint.requests.at(-1)?.messages)).not.toContain("Ada");
    expect((await turnsOf(name.thread_id)).json.data.turns).toHaveLength(1);
  });

  it("threads open to a key with the scope chat that knows their id; their list needs admin", async () => {
    await say("known", "Hello?");
    const chat = await running.issueKey("local", ["chat"]);
    expect((await turnsOf("known", {}, chat)).status).toBe(200);
    expect(await send("GET", "", { agent_id: "default" }, chat)).toMatchObject({
      status: 403,
      json: { error: { code: "scope_missing" } },
    });
    expect((await send("DELETE", "", { agent_id: "default", thread_id: "known" }, chat)).status).toBe(200);
  });

  it.each([
    ["a cursor of nothing", "", { agent_id: "default", cursor: "AAAA" }, "cursor"],
    ["no agent", "", {}, "agent_id"],
    ["a limit of 0", "", { agent_id: "default", limit: "0" }, "limit"],
    ["no thread", "/turns", { agent_id: "default" }, "thread_id"],
    ["a cursor in words", "/turns", { agent_id: "default", thread_id: "t", cursor: "x" }, "cursor"],
    ["a long id", "/turns", { agent_id: "default", thread_id: "t".repeat(257) }, "thread_id"],
  ])("a request for threads is refused for %s, with its field", async (_name, path, query, field) => {
    expect(await send("GET", path, query)).toMatchObject({ status: 400, json: { error: { field } } });
  });
});

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Running } from "../service/running.ts";
import { ask, openAsking } from "./asking.ts";

let nowMs = Date.parse("2026-11-21T12:00:00Z");
let running: Running;
beforeAll(async () => {
  // The limit of keys is higher than these tests need. Without a limit of keys there are no others.
  const rate = { perMinute: 10_000, burst: 10_000 };
  running = await openAsking(undefined, { defaultKnowledge: () => [] }, { rate, nowMs: () => nowMs });
});
afterAll(() => running.close());

/** Fewer concurrent questions than may wait for one thread. */
const AT_ONCE = 10;
const statuses = async (count: number, body: object): Promise<number[]> => {
  const found: number[] = [];
  for (let left = count; left > 0; left -= AT_ONCE) {
    const asked = Array.from({ length: Math.min(AT_ONCE, left) }, () =>
      ask(running, { user: "Hello", ...body }),
    );
    found.push(...(await Promise.all(asked)).map(({ status }) => status));
  }
  return found;
};
const times = (count: number): number[] => Array.from({ length: count }, () => 200);

describe("where requests are limited", () => {
  it("limits a thread to 20 questions a minute, and an agent to 100", async () => {
    expect(await statuses(20, { thread_id: "busy" })).toEqual(times(20));
    const refused = await ask(running, { user: "Hello", thread_id: "busy" });
    expect(refused).toMatchObject({
      status: 429,
      json: { message: expect.stringMatching(/^The thread/), error: { code: "rate_limited" } },
    });
    expect(refused.headers["retry-after"]).toBe("3");
    // Questions that the thread refused do not count for its agent.
    expect(await statuses(80, {})).toEqual(times(80));
    const over = await ask(running, { user: "Hello", thread_id: "another" });
    expect(over).toMatchObject({ status: 429, json: { message: expect.stringMatching(/^The agent/) } });
    const key = await running.issueKey("someone-else");
    const foreign = await running.send("POST", "/api/v2/model/chat/completion", {
      key,
      body: { agent_id: "default", user: "Hello", thread_id: "busy" },
    });
    expect(foreign.status).toBe(200);
    nowMs += 60_000;
    expect(await statuses(20, { thread_id: "busy" })).toEqual(times(20));
  });

  it("an invalid question does not count for the rate", async () => {
    nowMs += 60_000;
    const wrong = { user: "", thread_id: "wrong" };
    expect(new Set(await statuses(30, wrong))).toEqual(new Set([400]));
    expect(await statuses(20, { thread_id: "wrong" })).toEqual(times(20));
  });
});

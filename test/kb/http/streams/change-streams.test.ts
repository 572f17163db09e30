import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Agent } from "undici";
import { openRunning, type Running } from "../../service/running.ts";
import { openChangeStream } from "./change-stream.ts";

let running: Running;
const agent = new Agent();
beforeAll(async () => {
  running = await openRunning();
});
afterAll(async () => {
  await agent.destroy();
  await running.close();
});

describe("the stream of changes", () => {
  it("the stream of changes ends with the reason when its key is no longer valid", async () => {
    const expiresAt = new Date(Date.now() + 1500).toISOString();
    const key = await running.issueKey("ended", ["read"], expiresAt);
    const stream = await openChangeStream(running, agent, "", {}, key);
    await stream.ended;
    expect(stream.events.at(-1)).toMatchObject({ event: "error", data: { error: { code: "key_expired" } } });
  }, 20_000);

  it("the stream of changes ends as soon as its key is revoked", async () => {
    // At a time that stands still no stream checks its key again by itself.
    const still = await openRunning({ nowMs: () => 1_800_000_000_000 });
    try {
      const admin = await still.issueKey("revoked", ["admin"]);
      const made = await still.send("POST", "/v1/keys", {
        key: admin,
        body: { name: "x", scopes: ["read"] },
      });
      const stream = await openChangeStream(still, agent, "", {}, made.json.data.key);
      const revoked = await still.send("DELETE", `/v1/keys/${made.json.data._id}`, { key: admin });
      expect(revoked.status).toBe(200);
      await stream.ended;
      expect(stream.events.at(-1)?.data).toMatchObject({ error: { code: "key_unknown" } });
    } finally {
      await still.close();
    }
  }, 20_000);

  it("leaves streams to other accounts if one opens as many as it can", async () => {
    const key = await running.issueKey("greedy", ["read"]);
    const streams = await Promise.all(
      Array.from({ length: 260 }, () => openChangeStream(running, agent, "", {}, key)),
    );
    expect(streams.filter(({ statusCode }) => statusCode === 503).length).toBeGreaterThan(0);
    const other = await openChangeStream(running, agent, "");
    expect(other.statusCode).toBe(200);
    for (const stream of [...streams, other]) stream.stop();
  }, 30_000);
});

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createBody, openRunning } from "../service/running.ts";
import type { Running, RunningOptions } from "../service/running.ts";

const NOW_MS = Date.UTC(2026, 10, 24, 12, 30);
let stateDir: string;
let running: Running;
let admin: string;
let nowMs: number;
beforeEach(async () => {
  stateDir = await mkdtemp(join(tmpdir(), "kbsync-usage-"));
  nowMs = NOW_MS;
  await open({});
});
afterEach(async () => {
  await running.close();
  await rm(stateDir, { recursive: true });
});

const open = async (options: RunningOptions): Promise<void> => {
  running = await openRunning({ stateDir, nowMs: () => nowMs, ...options });
  admin = await running.issueKey("local", ["admin"]);
};
const create = async (): Promise<string> => {
  const body = createBody({
    content: "The moon pulls the sea.",
    owner_id: "usage",
    collection_details: "fastest",
  });
  return (await running.send("POST", "/api/rag/resource", { body })).json.data.collectionId;
};
const usage = async (query = "", key = admin) =>
  (await running.send("GET", `/v1/usage${query}`, { key })).json.data.points;

describe("the use of an account over time", () => {
  it("the use of an account over time counts documents and searches with their latency, also of before a restart", async () => {
    expect((await usage()).length).toBe(24);
    const collectionId = await create();
    const body = { query: "moon", collection_id: collectionId, owner_id: "usage" };
    for (let at = 0; at < 3; at++) await running.send("POST", "/rag/query", { body });
    await running.close();
    nowMs += 3_600_000;
    await open({});
    await running.send("POST", "/rag/query", { body });
    const points = await usage("?count=3");
    expect(
      points.map(({ at, documents, searches }: Record<string, unknown>) => [at, documents, searches]),
    ).toEqual([
      ["2026-11-24T11:00:00.000Z", null, 0],
      ["2026-11-24T12:00:00.000Z", 1, 3],
      ["2026-11-24T13:00:00.000Z", 1, 1],
    ]);
    expect(points[0].latency).toBeNull();
    expect(points[1].latency.p95Ms).toBeGreaterThan(0);
    expect(points[1].latency.p95Ms).toBeGreaterThanOrEqual(points[1].latency.p50Ms);
    expect(await usage("?step=day&count=1")).toMatchObject([{ documents: 1, searches: 4, cost: null }]);
  });

  it("shows an account its own use and cost, and the cost of all to the account that pays for the models", async () => {
    await running.close();
    await open({ budget: { perDay: 5 } });
    const cost = { day: "2026-11-24", dayMax: null, monthMax: null, spender: "chat" as const };
    const { records } = running.store;
    const spend = async (nanos: number, account?: string) =>
      records.spend({
        ...cost,
        nanos,
        ...(account && { accountId: (await records.ensureAccount(account)).id }),
      });
    await spend(500_000_000);
    await spend(1_500_000_000, "local");
    await spend(250_000_000, "other");
    await create();
    expect(await usage("?step=day&count=2")).toMatchObject([
      { cost: 0, costOfAll: 0 },
      { documents: 1, cost: 1.5, costOfAll: 2.25 },
    ]);
    const other = await running.issueKey("other", ["admin"]);
    expect(await usage("?step=day&count=1", other)).toMatchObject([
      { documents: null, searches: 0, cost: 0.25, costOfAll: null },
    ]);
  });

  it.each([["?count=0"], ["?count=169"], ["?step=day&count=91"], ["?step=week"]])(
    "the use of an account refuses %s",
    async (query) => {
      const { status, json } = await running.send("GET", `/v1/usage${query}`, { key: admin });
      expect([status, json.error.code]).toEqual([400, "invalid_field"]);
    },
  );

  it("the use of an account over time needs the scope admin", async () => {
    const key = await running.issueKey("local", ["read", "write", "chat"]);
    expect((await running.send("GET", "/v1/usage", { key })).status).toBe(403);
  });
});

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { openRemoteEmbedder, type TokenMeter } from "../../../src/kb/embed/remote.ts";
import { ENDPOINT_KEY, openModelEndpoint, type ModelEndpoint } from "../../fakes/model-endpoint.ts";
import { openModelService, type ModelService } from "../../fakes/model-service.ts";
import { createBody, openRunning, type RunningOptions } from "./running.ts";
import type { Answered, Running } from "./running.ts";
import { WAIT } from "../../wait.ts";

/** An answer of the endpoint has 100 tokens of input and 10 of output. */
const MODELS = { seeing: { inputPrice: 1000, outputPrice: 1000, contextTokens: 1024 } };
const ANSWER_COST = 0.11;
let stateDir: string;
let endpoint: ModelEndpoint;
let embedding: ModelService;
let running: Running;
let nowMs: number;
beforeEach(async () => {
  stateDir = await mkdtemp(join(tmpdir(), "kbsync-budget-"));
  endpoint = await openModelEndpoint();
  embedding = await openModelService("key");
  nowMs = Date.UTC(2026, 10, 24, 12);
});
afterEach(async () => {
  await running.close();
  await endpoint.close();
  await embedding.close();
  await rm(stateDir, { recursive: true });
});

const open = async (options: RunningOptions): Promise<Running> =>
  (running = await openRunning({ stateDir, nowMs: () => nowMs, ...options }));
const withChat = (perDay: number): RunningOptions => ({
  languageModel: { baseUrl: endpoint.url, model: "seeing", apiKey: ENDPOINT_KEY },
  chat: { models: MODELS },
  budget: { perDay },
});
const withEmbedding = (perDay: number): RunningOptions => ({
  openEmbedder: (meter?: TokenMeter) =>
    openRemoteEmbedder({ baseUrl: embedding.baseUrl, model: "hashed", apiKey: "key", meter }),
  budget: { perDay, embeddingPrice: 1_000_000 },
});
const ask = (): Promise<Answered> =>
  running.send("POST", "/api/v2/model/chat/completion", { body: { agent_id: "default", user: "Why?" } });

describe("a budget", () => {
  it("answers questions until it is spent, then 429 until the next day, also after a restart", async () => {
    await open(withChat(10));
    let answered = 0;
    let refused = await ask();
    for (; refused.status === 200; refused = await ask()) answered += 1;
    expect(answered).toBeGreaterThan(1);
    expect(answered * ANSWER_COST).toBeLessThanOrEqual(10);
    expect(refused).toMatchObject({ status: 429, headers: { "retry-after": String(12 * 3600) } });
    expect(refused.json.error.code).toBe("budget_spent");
    await running.close();
    await open(withChat(10));
    expect((await ask()).status).toBe(429);
    expect(await running.service.figures()).toMatchObject({
      spent: { day: expect.closeTo(answered * ANSWER_COST, 6) },
    });
    nowMs += 12 * 3_600_000;
    expect((await ask()).status).toBe(200);
    expect(endpoint.requests).toHaveLength(answered + 1);
  });

  it("lets documents wait for their vectors when it is spent, and words find them", async () => {
    await open(withEmbedding(200));
    const create = async (content: string): Promise<void> => {
      const body = createBody({ content, collection_details: "moderate", owner_id: "ann" });
      expect((await running.send("POST", "/api/rag/resource", { body })).status).toBe(201);
    };
    await create("The kiwi walks.");
    await vi.waitFor(
      async () => expect(await running.store.index.servingFingerprints()).toHaveLength(1),
      WAIT,
    );
    const asked = embedding.requests.length;
    await create("The heron stands by the canal. ".repeat(30));
    const health = await vi.waitFor(async () => {
      const { json } = await running.send("GET", "/v1/health");
      expect(json).toMatchObject({ embedder: { state: "failing" } });
      return json;
    }, WAIT);
    expect(embedding.requests).toHaveLength(asked);
    expect(health.embedder.message).toContain("The budget of 200 per day for models is spent.");
    const { json } = await running.send("GET", "/api/rag/collections");
    const { _id: collection_id } = json.data.collections.find(
      ({ details }: { details: string }) => details === "moderate",
    );
    const found = await running.send("POST", "/rag/query", {
      body: { query: "heron canal", collection_id, owner_id: "ann" },
    });
    expect(found.json.results).not.toEqual([]);
    expect(found.json.fallback).toBeDefined();
  });

  it("a budget counts for each account what its questions, documents and searches cost", async () => {
    await open({ ...withChat(1000), ...withEmbedding(1_000_000) });
    const costOf = async (name: string): Promise<{ cost: number; costOfAll: number | null }> => {
      const key = await running.issueKey(name, ["admin"]);
      const { json } = await running.send("GET", "/v1/usage?step=day&count=1", { key });
      return json.data.points[0];
    };
    const key = await running.issueKey("other", ["admin"]);
    expect((await ask()).status).toBe(200);
    expect((await costOf("local")).cost).toBeCloseTo(ANSWER_COST, 6);
    expect((await costOf("other")).cost).toBe(0);

    const body = createBody({ content: "The kiwi walks.", collection_details: "moderate", owner_id: "ann" });
    const { data } = (await running.send("POST", "/api/rag/resource", { key, body })).json;
    await vi.waitFor(
      async () => expect(await running.store.index.servingFingerprints()).toHaveLength(1),
      WAIT,
    );
    const document = (await costOf("other")).cost;
    expect(document).toBeGreaterThan(0);
    const query = { query: "kiwi", doc_id: data._id };
    expect((await running.send("POST", "/rag/query", { key, body: query })).status).toBe(200);
    const { cost, costOfAll } = await costOf("other");
    expect(cost).toBeGreaterThan(document);
    expect(costOfAll).toBeNull();
    const local = await costOf("local");
    expect(local.cost).toBeCloseTo(ANSWER_COST, 6);
    // The model's own trial at its start is of no account.
    expect(local.costOfAll).toBeGreaterThan(cost + local.cost);
  });
});

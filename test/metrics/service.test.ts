import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { openMetrics } from "../../src/metrics/metrics.ts";
import { hashedEmbedder } from "../fakes/hashed-embedder.ts";
import { openModelEndpoint } from "../fakes/model-endpoint.ts";
import { ask, openAsking } from "../kb/chat/asking.ts";
import { openReceiver } from "../kb/webhooks/receiver.ts";
import { createBody, openRunning, type Running } from "../kb/service/running.ts";
import { declaredNames, OWN_METRICS, samplesOf, valueOf } from "./names.ts";

let running: Running;
beforeAll(async () => {
  const metrics = openMetrics("0.0.0-test");
  running = await openRunning({ observer: metrics.service, metrics: () => metrics.text() });
  metrics.readService(() => running.service.figures());
  const { json } = await running.send("POST", "/api/rag/resource", { body: createBody() });
  const { collectionId, ownerId } = json.data;
  const query = { query: "moon", collection_id: collectionId, owner_id: ownerId };
  await running.send("POST", "/rag/query", { body: query });
  await running.send("GET", "/no/such/address/at-all");
  await running.send("DELETE", "/api/rag/resource/000000000000000000000000");
});
afterAll(() => running.close());

const read = async (): Promise<string> => (await running.send("GET", "/metrics", { key: null })).text;

it("the service serves metrics without a key, in the text format of Prometheus", async () => {
  const { status, headers } = await running.send("GET", "/metrics", { key: null });
  expect(status).toBe(200);
  expect(headers["content-type"]).toBe("text/plain; version=0.0.4; charset=utf-8");
});

it("the service's metrics have exactly the documented names and labels", async () => {
  const text = await read();
  const own = declaredNames(text).filter((name) => name.startsWith("kbsync_"));
  const promised = Object.keys(OWN_METRICS).filter((name) => !name.startsWith("kbsync_sync_"));
  expect(own.toSorted()).toEqual(promised.toSorted());
  for (const { name, labels } of samplesOf(text).filter((one) => one.name.startsWith("kbsync_"))) {
    const base = name.replace(/_(bucket|sum|count)$/, "");
    const known = OWN_METRICS[name] ?? OWN_METRICS[base];
    const found = Object.keys(labels).filter((label) => label !== "le");
    expect({ name, labels: found.toSorted() }).toEqual({ name, labels: known });
  }
  expect(declaredNames(text)).toContain("nodejs_eventloop_lag_p99_seconds");
});

it("the service's metrics count requests by operation and status, never by URL", async () => {
  const text = await read();
  const requests = (labels: Record<string, string>): number | undefined =>
    valueOf(text, "kbsync_service_requests_total", labels);
  expect(requests({ operation: "POST /api/rag/resource", status: "201" })).toBe(1);
  expect(requests({ operation: "DELETE /api/rag/resource/:id", status: "404" })).toBe(1);
  expect(requests({ operation: "other", status: "404" })).toBe(1);
  expect(text).not.toContain("at-all");
});

it("the service's metrics measure searches by tier, and the stages of ingestion", async () => {
  const text = await read();
  expect(valueOf(text, "kbsync_service_search_duration_seconds_count", { tier: "fastest" })).toBe(1);
  for (const stage of ["chunk", "store"])
    expect(valueOf(text, "kbsync_service_ingest_stage_duration_seconds_count", { stage })).toBe(1);
});

it("the service's metrics show its state, its models and its queue", async () => {
  const text = await read();
  expect(valueOf(text, "kbsync_service_state", { state: "ready" })).toBe(1);
  expect(valueOf(text, "kbsync_service_state", { state: "draining" })).toBe(0);
  expect(valueOf(text, "kbsync_service_model_state", { model: "embedder", state: "off" })).toBe(1);
  expect(valueOf(text, "kbsync_service_queue_documents")).toBe(0);
  expect(valueOf(text, "kbsync_service_requests_under_way")).toBe(0);
});

it("the service's metrics count questions answered by webhook, and messages that were given up", async () => {
  const seen = openMetrics("0.0.0-test");
  let nowMs = Date.now();
  const options = { observer: seen.service, metrics: () => seen.text(), webhookAllow: ["127.0.0.1"] };
  const asked = await openRunning({ ...options, nowMs: () => nowMs });
  const receiver = await openReceiver();
  receiver.answer = () => ({ status: 503 });
  try {
    seen.readService(() => asked.service.figures());
    const value = async (name: string, labels: Record<string, string> = {}) =>
      valueOf((await seen.text()).text, name, labels);
    expect(await value("kbsync_service_questions_total", { outcome: "failed" })).toBe(0);
    const webhook = { url: `${receiver.url}/asked` };
    const accepted = asked.send("POST", "/api/v2/model/chat/completion", {
      body: { agent_id: "default", user: "Hello", webhook },
    });
    expect((await accepted).status).toBe(202);
    await vi.waitFor(async () => expect(receiver.messages).toHaveLength(1), 20_000);
    expect(await value("kbsync_service_questions_total", { outcome: "answered" })).toBe(1);
    expect(await value("kbsync_service_queue_questions")).toBe(0);
    expect(await value("kbsync_service_queue_questions_oldest_seconds")).toBe(0);
    const messages = (state: string) => value("kbsync_service_webhook_messages", { state });
    expect([await messages("waiting"), await messages("failed")]).toEqual([1, 0]);
    await vi.waitFor(async () => {
      nowMs += 7 * 60 * 60 * 1000;
      // Any write wakes the delivery runner.
      await asked.send("POST", "/api/rag/resource", { body: createBody({ title: `At ${nowMs++}` }) });
      expect([await messages("waiting"), await messages("failed")]).toEqual([0, 1]);
    }, 20_000);
  } finally {
    await asked.close();
    await receiver.close();
  }
});

it("the service's metrics count chunks, and the tokens of models at endpoints", async () => {
  expect(valueOf(await read(), "kbsync_service_chunks_total")).toBe(1);
  const seen = openMetrics("0.0.0-test");
  const endpoint = await openModelEndpoint();
  const asked = await openAsking(
    endpoint,
    {},
    {
      observer: seen.service,
      openEmbedder: (onTokens) => {
        onTokens?.(7);
        return Promise.resolve(hashedEmbedder());
      },
    },
  );
  try {
    await ask(asked, { user: "When is high tide?" });
    await asked.send("POST", "/api/rag/resource", { body: createBody({ collection_details: "moderate" }) });
    const tokens = async (model: string, kind: string) =>
      valueOf((await seen.text()).text, "kbsync_service_model_tokens_total", { model, kind });
    expect(await tokens("language_model", "input")).toBe(100);
    expect(await tokens("language_model", "output")).toBe(10);
    await expect.poll(() => tokens("embedder", "input")).toBe(7);
  } finally {
    await asked.close();
    await endpoint.close();
  }
});

it("the service's metrics name no owner, no document and no account", async () => {
  const text = await read();
  const account = (await running.send("GET", "/api/rag/owners")).text;
  const ids = [...account.matchAll(/"([0-9a-f]{24})"/g)].map(([, id = ""]) => id);
  expect(ids.length).toBeGreaterThan(0);
  for (const word of [...ids, "Tides", running.key, running.stateDir]) expect(text).not.toContain(word);
});

it("the service's metrics do not count monitoring requests", async () => {
  for (const path of ["/healthz", "/readyz", "/v1/health"]) {
    expect((await running.send("GET", path, { key: null })).status).toBe(200);
    expect(await read()).not.toContain(path);
  }
});

it("the metrics omit a part that cannot be read, and count the failure", async () => {
  const metrics = openMetrics("0.0.0-test");
  let broken = false;
  metrics.readService(() =>
    broken ? Promise.reject(new Error("the store is gone")) : running.service.figures(),
  );
  expect(valueOf((await metrics.text()).text, "kbsync_service_queue_documents")).toBe(0);
  broken = true;
  const { text } = await metrics.text();
  expect(valueOf(text, "kbsync_service_queue_documents")).toBeUndefined();
  expect(valueOf(text, "kbsync_service_state")).toBeUndefined();
  expect(valueOf(text, "kbsync_metrics_failures_total", { part: "service" })).toBe(1);
  expect(valueOf(text, "kbsync_build_info")).toBe(1);
});

it("the service does not serve metrics when other machines can reach it", async () => {
  const metrics = openMetrics("0.0.0-test");
  const open = await openRunning({ host: "0.0.0.0", metrics: () => metrics.text() });
  try {
    const at = (path: string): string => `http://127.0.0.1:${new URL(open.url).port}${path}`;
    expect((await open.send("GET", at("/metrics"))).json.error.code).toBe("route_not_found");
    expect((await open.send("GET", at("/readyz"), { key: null })).json).toEqual({
      success: true,
      status: "ready",
    });
  } finally {
    await open.close();
  }
});

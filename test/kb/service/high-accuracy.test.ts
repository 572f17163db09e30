import { afterEach, describe, expect, it, vi } from "vitest";
import { openRemoteEmbedder } from "../../../src/kb/embed/remote.ts";
import { hashedEmbedder } from "../../fakes/hashed-embedder.ts";
import { openModelService } from "../../fakes/model-service.ts";
import type { ModelService } from "../../fakes/model-service.ts";
import { createBody, openRunning } from "./running.ts";
import type { Running, RunningOptions } from "./running.ts";
import { WAIT } from "../../wait.ts";
import { lackingChunks } from "../store/embedded.ts";

const KEY = "sk-of-the-tests";
let running: Running;
let models: ModelService | undefined;
afterEach(async () => {
  await running.close();
  await models?.close();
  models = undefined;
});

const open = async (options: RunningOptions = {}): Promise<void> => {
  running = await openRunning({ openEmbedder: async () => hashedEmbedder(), ...options });
};
const create = async (content: string): Promise<{ _id: string; collectionId: string; ownerId: string }> => {
  const body = createBody({ collection_details: "high_accuracy", content });
  const { status, json } = await running.send("POST", "/api/rag/resource", { body });
  expect(status).toBe(201);
  return json.data;
};
const find = async (query: string, docId: string): Promise<string[]> => {
  const { status, json } = await running.send("POST", "/rag/query", {
    body: { query, doc_id: docId, top_k: 3 },
  });
  expect(status).toBe(200);
  return json.results.map(({ payload }: { payload: { content: string } }) => payload.content);
};
const health = async () => (await running.send("GET", "/v1/health")).json;
const lacking = async (): Promise<number> =>
  (
    await lackingChunks(running.store.index, hashedEmbedder().fingerprint, {
      tiers: ["high_accuracy"],
      lacks: "sentences",
    })
  ).length;

describe("high_accuracy", () => {
  it("high_accuracy stores sentence vectors after a document is answered, and searches them", async () => {
    await open();
    const made = await create("The heron waits by the river. The otter swims under the ice.");
    await vi.waitFor(async () => expect(await lacking()).toBe(0), WAIT);
    expect((await find("where does the heron wait", made._id))[0]).toContain("heron");
    const where = { collection_id: made.collectionId, owner_id: made.ownerId, query: "otter" };
    const { json } = await running.send("POST", "/rag/query", { body: where });
    expect(json.results).toHaveLength(1);
    expect(json.results[0].score).toBeGreaterThan(0);
    expect((await health()).tiers.high_accuracy).toMatch(/fused\), the best reranked by their sentences$/);
  });

  it("high_accuracy searches words alone without a model, and says so", async () => {
    await open({ openEmbedder: async () => ({ kind: "no-model", reason: "none", hint: "install one" }) });
    const { _id } = await create("The heron waits by the river.");
    expect(await find("heron", _id)).toHaveLength(1);
    expect((await health()).tiers.high_accuracy).toMatch(/words alone/);
  });

  it("high_accuracy embeds and reranks at the configured addresses, reports when they fail, and still answers", async () => {
    models = await openModelService(KEY);
    const { baseUrl } = models;
    await open({
      openEmbedder: () => openRemoteEmbedder({ baseUrl, model: "hashed", apiKey: () => KEY, delayMs: 1 }),
      reranker: { url: `${baseUrl}/rerank`, model: "overlap", apiKey: () => KEY },
    });
    expect((await health()).reranker.state).toBe("idle");
    const { _id } = await create("The heron waits by the river.");
    expect(await find("heron", _id)).toHaveLength(1);
    expect(models.requests.map(({ path }) => path)).toContain("/v1/rerank");
    let reported = await health();
    expect([reported.embedder.state, reported.reranker.state]).toEqual(["ready", "ready"]);
    expect(reported.tiers.high_accuracy).toMatch(/reranked by the reranker/);

    models.misbehave = () => ({ status: 500 });
    expect(await find("the heron", _id)).toHaveLength(1);
    reported = await health();
    expect([reported.embedder.state, reported.reranker.state]).toEqual(["failing", "failing"]);
    expect(reported.tiers.high_accuracy).toMatch(/words alone/);
    expect(running.log()).toContain("the reranker fails");
    expect(running.log() + JSON.stringify(reported)).not.toContain(KEY);
    expect(JSON.stringify(reported)).not.toContain(baseUrl);
  });
});

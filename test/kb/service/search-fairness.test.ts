import { afterEach, expect, it, vi } from "vitest";
import { openRemoteEmbedder } from "../../../src/kb/embed/remote.ts";
import { openModelService, type ModelService } from "../../fakes/model-service.ts";
import { createBody, openRunning, type Running } from "./running.ts";
import { WAIT } from "../../wait.ts";

/** Searches of the hostile account in flight. */
const MANY = 60;
const KEY = "sk-of-the-tests";

let running: Running | undefined;
let models: ModelService | undefined;
afterEach(async () => {
  await running?.close();
  await models?.close();
});

it.each(["/v1/embeddings", "/v1/rerank"])(
  "a search does not wait for the calls of %s that another account's searches make",
  async (slowPath) => {
    const service = await openModelService(KEY);
    const { baseUrl, requests } = service;
    models = service;
    const at = await openRunning({
      openEmbedder: () => openRemoteEmbedder({ baseUrl, model: "hashed", apiKey: () => KEY, delayMs: 1 }),
      reranker: { url: `${baseUrl}/rerank`, model: "overlap", apiKey: () => KEY },
      limits: { drainMs: 100 },
    });
    running = at;
    const openSearch = async (account: string) => {
      const key = await at.issueKey(account);
      const body = createBody({ collection_details: "high_accuracy" });
      const { json } = await at.send("POST", "/api/rag/resource", { key, body });
      const { collectionId, ownerId } = json.data;
      const search = { query: `moon of ${account}`, collection_id: collectionId, owner_id: ownerId };
      return () => at.send("POST", "/rag/query", { key, body: search });
    };
    const hostile = await openSearch("hostile");
    const victim = await openSearch("victim");
    const callsOf = (account: string) =>
      requests.filter(
        ({ path, json }) => path === slowPath && JSON.stringify(json).includes(`moon of ${account}`),
      ).length;

    service.misbehave = ({ path }) => (path === slowPath ? "hang" : undefined);
    const searches = Array.from({ length: MANY }, hostile);
    await vi.waitFor(() => expect(callsOf("hostile")).toBeGreaterThan(3), WAIT);
    searches.push(victim());
    await vi.waitFor(() => expect(callsOf("victim")).toBe(1), WAIT);
    void Promise.allSettled(searches);
  },
);

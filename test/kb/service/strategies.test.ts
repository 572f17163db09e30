import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { hashedEmbedder } from "../../fakes/hashed-embedder.ts";
import { startLanguageModelServer } from "../../fakes/language-model-server.ts";
import type { LanguageModelServer } from "../../fakes/language-model-server.ts";
import { createBody, openRunning } from "./running.ts";
import type { Running } from "./running.ts";

const CONTENT = `${"Chapter one is of the sea and the tide. ".repeat(4)}${"Chapter two is of bread and dough. ".repeat(4)}`;

describe("chunking strategies over the wire", () => {
  let server: LanguageModelServer;
  let running: Running | undefined;
  beforeEach(async () => {
    server = await startLanguageModelServer();
  });
  afterEach(async () => {
    await running?.close();
    await server.close();
  });

  const open = async (withModel: boolean, withLanguage: boolean): Promise<Running> => {
    const { baseUrl, apiKey } = server;
    running = await openRunning({
      ...(withModel && { openEmbedder: async () => hashedEmbedder() }),
      ...(withLanguage && { languageModel: { baseUrl, apiKey: () => apiKey, model: "divider-1" } }),
    });
    return running;
  };
  /** The record of a document created with a strategy. */
  const recordOf = async (on: Running, strategy: string) => {
    const settings = { strategy, chunkSize: 200, chunkOverlap: 0 };
    const body = createBody({ content: CONTENT, settings });
    const created = await on.send("POST", "/api/rag/resource", { body });
    expect([created.status, created.json.data?.settings]).toEqual([201, settings]);
    const { json } = await on.send("GET", `/api/rag/resource/${created.json.data._id}`);
    expect(json.data.content).toBe(CONTENT);
    return json.data;
  };

  it.each<[name: string, withModel: boolean, withLanguage: boolean, semantic: string, agentic: string]>([
    ["both models", true, true, "semantic", "agentic"],
    ["an embedding model", true, false, "semantic", "semantic"],
    ["no model", false, false, "recursive", "recursive"],
  ])(
    "metadata reports the strategy that was used, with %s",
    async (_name, withModel, withLanguage, semantic, agentic) => {
      const on = await open(withModel, withLanguage);
      expect((await recordOf(on, "recursive")).metadata).toEqual({ status: "chunked" });
      expect((await recordOf(on, "semantic")).metadata).toEqual({
        status: "chunked",
        strategyUsed: semantic,
      });
      const { _id: id, metadata } = await recordOf(on, "agentic");
      expect(metadata).toEqual({ status: "chunked", strategyUsed: agentic });
      const health = await on.send("GET", "/v1/health", { key: null });
      expect(health.json.languageModel.state).toBe(withLanguage ? "ready" : "off");

      const put = async (body: object) =>
        (await on.send("PUT", `/api/rag/resource/${id}`, { body })).json.data.metadata;
      expect(await put({ title: "Other" })).toEqual({ status: "chunked", strategyUsed: agentic });
      expect(await put({ settings: { strategy: "semantic" } })).toEqual({
        status: "chunked",
        strategyUsed: semantic,
      });
      expect(await put({ settings: { strategy: "recursive" } })).toEqual({ status: "chunked" });
    },
  );

  it("never shows the language model's key", async () => {
    server.next({ status: 401, error: `Incorrect API key provided: ${server.apiKey}` });
    const on = await open(true, true);
    expect((await recordOf(on, "agentic")).metadata.strategyUsed).toBe("semantic");
    expect(on.log()).toContain("the language model fails");
    expect(on.log()).not.toContain(server.apiKey);
    expect((await on.send("GET", "/v1/health", { key: null })).json.languageModel.state).toBe("failing");
  });
});

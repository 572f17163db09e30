import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Embedder } from "../../../src/kb/embed/embedder.ts";
import { openRemoteEmbedder } from "../../../src/kb/embed/remote.ts";
import { hashedEmbedder } from "../../fakes/hashed-embedder.ts";
import { openModelService } from "../../fakes/model-service.ts";
import { createBody, openRunning } from "./running.ts";
import type { Running, RunningOptions } from "./running.ts";
import { WAIT } from "../../wait.ts";
import { lackingChunks } from "../store/embedded.ts";

let stateDir: string;
let running: Running;
beforeEach(async () => {
  stateDir = await mkdtemp(join(tmpdir(), "kbsync-model-"));
});
afterEach(async () => {
  await running.close();
  await rm(stateDir, { recursive: true });
});

const NONE = { kind: "no-model", reason: "no embedding model", hint: "install one" } as const;

async function open(openEmbedder: RunningOptions["openEmbedder"]): Promise<void> {
  running = await openRunning({ stateDir, ...(openEmbedder === undefined ? {} : { openEmbedder }) });
}

async function createModerate(content: string): Promise<string> {
  const body = createBody({ collection_details: "moderate", content });
  const answer = await running.send("POST", "/api/rag/resource", { body });
  expect(answer.status).toBe(201);
  return answer.json.data._id;
}

const withoutVector = async (): Promise<number> =>
  (await lackingChunks(running.store.index, hashedEmbedder().fingerprint, { tiers: ["moderate"] })).length;

const health = async () => (await running.send("GET", "/v1/health")).json.embedder;

describe("moderate", () => {
  it("moderate stores a vector for each chunk after it answers", async () => {
    await open(async () => hashedEmbedder());
    await createModerate("One two three. ".repeat(300));
    await vi.waitFor(async () => expect(await withoutVector()).toBe(0), WAIT);
    expect((await health()).state).toBe("ready");
  });

  it.each(["fastest", "moderate", "high_accuracy"])(
    "a create and an update in %s answer before any vector while the model hangs, and words find them",
    async (tier) => {
      const model = { ...hashedEmbedder(), embed: () => new Promise<never>(() => undefined) };
      const queries = hashedEmbedder();
      await open(async () => ({ ...model, queries }));
      const body = createBody({ collection_details: tier, content: "The heron waits. ".repeat(100) });
      const created = await running.send("POST", "/api/rag/resource", { body });
      expect(created.status).toBe(201);
      const { _id: id } = created.json.data;
      const status = async (): Promise<string> =>
        (await running.send("GET", `/api/rag/resource/${id}`)).json.data.metadata.status;
      expect(await status()).toBe("chunked");
      const found = async (query: string): Promise<number> => {
        const asked = await running.send("POST", "/rag/query", { body: { query, doc_id: id } });
        return asked.json.results.length;
      };
      expect(await found("heron")).toBeGreaterThan(0);
      const change = { content: "An otter swims. ".repeat(100) };
      const updated = await running.send("PUT", `/api/rag/resource/${id}`, { body: change });
      expect([updated.status, await status()]).toEqual([200, "chunked"]);
      expect(await found("otter")).toBeGreaterThan(0);
    },
  );

  it("opens the model only when it is needed, not for fastest", async () => {
    const openEmbedder = vi.fn<() => Promise<Embedder>>(async () => hashedEmbedder());
    await open(openEmbedder);
    await running.send("POST", "/api/rag/resource", { body: createBody() });
    expect(openEmbedder).not.toHaveBeenCalled();
    expect((await health()).state).toBe("idle");
    await createModerate("Words.");
    await createModerate("More words.");
    await vi.waitFor(async () => expect(await withoutVector()).toBe(0), WAIT);
    expect(openEmbedder).toHaveBeenCalledTimes(1);
  });

  it("a start over documents of fastest alone opens no model", async () => {
    await open(async () => NONE);
    await running.send("POST", "/api/rag/resource", { body: createBody() });
    await running.close();
    const openEmbedder = vi.fn<() => Promise<Embedder>>(async () => hashedEmbedder());
    await open(openEmbedder);
    expect(openEmbedder).not.toHaveBeenCalled();
  });

  it("moderate searches words alone without a model, says so, and embeds from the start at which there is one", async () => {
    await open(async () => NONE);
    const id = await createModerate("The heron waits by the river.");
    expect(await withoutVector()).toBe(1);
    await vi.waitFor(
      async () => expect(await health()).toMatchObject({ state: "unavailable", hint: "install one" }),
      WAIT,
    );
    const query = { query: "heron", doc_id: id };
    expect((await running.send("POST", "/rag/query", { body: query })).json.results).toHaveLength(1);
    await running.close();

    await open(async () => hashedEmbedder());
    await vi.waitFor(async () => expect(await withoutVector()).toBe(0), WAIT);
  });

  it("stores a document on whose text the model fails, and says so until the model works again", async () => {
    const real = hashedEmbedder();
    let works = false;
    const model: Embedder = {
      ...real,
      embed: (...parts) => (works ? real.embed(...parts) : Promise.reject(new Error("model crashed"))),
    };
    await open(async () => model);
    const id = await createModerate("The heron waits.");
    const search = async () =>
      (await running.send("POST", "/rag/query", { body: { query: "heron", doc_id: id } })).status;
    expect(await search()).toBe(200);
    expect(await search()).toBe(200);
    const { embedder, tiers } = (await running.send("GET", "/v1/health")).json;
    expect(embedder.state).toBe("failing");
    expect(tiers.moderate).toMatch(/words alone/);
    expect(running.log().split('"msg":"model crashed"')).toHaveLength(2);
    works = true;
    expect(await search()).toBe(200);
    expect((await health()).state).toBe("ready");
  });

  it("health reports a failing model that a search found first", async () => {
    const queries: Embedder = {
      ...hashedEmbedder(),
      embed: () => Promise.reject(new Error("model crashed")),
    };
    await open(async () => ({ ...hashedEmbedder(), queries }));
    const doc_id = await createModerate("The heron waits.");
    await vi.waitFor(async () => expect(await withoutVector()).toBe(0), WAIT);
    expect((await health()).state).toBe("ready");
    const answer = await running.send("POST", "/rag/query", { body: { query: "heron", doc_id } });
    expect(answer.json.results).toHaveLength(1);
    expect((await health()).state).toBe("failing");
    expect(running.log()).toContain("model crashed");
  });

  it("logs a failing embedding model once, and searches do not ask it again while documents still use it", async () => {
    const service = await openModelService("sk-test");
    const facts = {
      baseUrl: service.baseUrl,
      model: "hashed",
      apiKey: () => "sk-test",
      timeoutMs: 300,
      delayMs: 1,
    };
    await open(() => openRemoteEmbedder(facts));
    const doc_id = await createModerate("The heron waits.");
    service.misbehave = ({ json }) => (json.input[0] === "heron" ? "hang" : undefined);
    for (let questions = 0; questions < 3; questions++) {
      const answer = await running.send("POST", "/rag/query", { body: { query: "heron", doc_id } });
      expect(answer.json.results).toHaveLength(1);
      await createModerate(`The heron flies ${questions}.`);
    }
    expect(service.requests.filter(({ json }) => json.input[0] === "heron")).toHaveLength(1);
    expect(running.log().split("the embedding model fails")).toHaveLength(2);
    await service.close();
  });

  it("answers a large document at once, and embeds small documents before the rest of it", async () => {
    const real = hashedEmbedder();
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    const embedded: number[] = [];
    const model: Embedder = {
      ...real,
      embed: async (texts, signal) => {
        const isLarge = texts.some((text) => text.includes("large"));
        if (isLarge) await released;
        embedded.push(isLarge ? texts.length : 0);
        return real.embed(texts, signal);
      },
    };
    await open(async () => model);
    const id = await createModerate("The large heron. ".repeat(5000));
    const body = { query: "heron", doc_id: id };
    expect((await running.send("POST", "/rag/query", { body })).json.results).toHaveLength(5);
    await createModerate("A small one.");
    expect(await withoutVector()).toBeGreaterThan(64);
    release();
    await vi.waitFor(async () => expect(await withoutVector()).toBe(0), { timeout: 10_000 });
    // In small steps, so that what is created meanwhile waits for one of them only.
    expect(Math.max(...embedded)).toBeLessThanOrEqual(32);
    const change = { content: "Another large heron. ".repeat(5000) };
    expect((await running.send("PUT", `/api/rag/resource/${id}`, { body: change })).status).toBe(200);
    await vi.waitFor(async () => expect(await withoutVector()).toBe(0), { timeout: 10_000 });
  });
});

describe("a long text", () => {
  it("chunks a long text off the event loop while other requests continue", async () => {
    await open(undefined);
    const content = "A sentence about the sea and the moon. ".repeat(100_000);
    const meanwhile: number[] = [];
    const create = running.send("POST", "/api/rag/resource", { body: createBody({ content }) });
    // Requests one after another for as long as the create takes.
    while ((await Promise.race([create, Promise.resolve("under way")])) === "under way") {
      meanwhile.push((await running.send("GET", "/api/rag/collections")).status);
    }
    expect((await create).status).toBe(201);
    expect(meanwhile.length).toBeGreaterThan(3);
    expect(new Set(meanwhile)).toEqual(new Set([200]));
    const { json } = await running.send("GET", "/api/rag/collections");
    expect(json.data.collections[0].chunks).toBeGreaterThan(3000);
  });
});

import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { openRemoteEmbedder } from "../../../src/kb/embed/remote.ts";
import type { RemoteEmbedder, RemoteEmbedderOptions } from "../../../src/kb/embed/remote.ts";
import { hashedEmbedder } from "../../fakes/hashed-embedder.ts";
import { openModelService } from "../../fakes/model-service.ts";
import type { Misbehaviour, ModelService } from "../../fakes/model-service.ts";
import { cosine, embedderContract } from "./embedder-contract.ts";

const KEY = "sk-secret-of-the-tests";
let service: ModelService;
const opened: RemoteEmbedder[] = [];
beforeAll(async () => {
  service = await openModelService(KEY);
});
afterEach(async () => {
  service.misbehave = () => undefined;
  service.requests.length = 0;
  for (const embedder of opened.splice(0)) await embedder.close();
});
afterAll(() => service.close());

const openAt = (options: Partial<RemoteEmbedderOptions>): Promise<RemoteEmbedder> => {
  const facts = { baseUrl: service.baseUrl, model: "hashed", apiKey: () => KEY, delayMs: 1, timeoutMs: 5000 };
  return openRemoteEmbedder({ ...facts, ...options });
};
/** Opens an embedder and closes it after the test. */
const open = async (options: Partial<RemoteEmbedderOptions> = {}): Promise<RemoteEmbedder> => {
  const embedder = await openAt(options);
  opened.push(embedder);
  return embedder;
};

embedderContract("OpenAI-compatible", async () => {
  // Above the maximum of the service's model, so that the model truncates.
  const embedder = await openAt({});
  return { ...embedder, tokensMax: hashedEmbedder().tokensMax };
});

describe("openRemoteEmbedder", () => {
  it("the remote embedder sends model, texts and key, and orders vectors by their index", async () => {
    const embedder = await open();
    service.requests.length = 0;
    const [cat, dog] = await embedder.embed(["the cat", "a dog barks"]);
    const [alone] = await hashedEmbedder().embed(["the cat"]);
    expect(cosine(cat, alone)).toBeCloseTo(1, 5);
    expect(cosine(dog, alone)).toBeLessThan(0.9);
    expect(service.requests).toHaveLength(1);
    const [{ json, path, headers } = {} as never] = service.requests;
    expect({ path, key: headers["authorization"] }).toEqual({ path: "/v1/embeddings", key: `Bearer ${KEY}` });
    expect(json.model).toBe("hashed");
    expect(json).not.toHaveProperty("dimensions");
  });

  it("the remote embedder reports the tokens that the service counts, and 0 where it counts none", async () => {
    const counts: number[] = [];
    const embedder = await open({ onTokens: (tokens) => counts.push(tokens) });
    await embedder.queries.embed(["the cat", "a dog barks"]);
    service.misbehave = () => ({
      body: { data: [{ index: 0, embedding: Array(embedder.dimensions).fill(1) }] },
    });
    await embedder.embed(["the cat"]);
    expect(counts).toEqual([10, 20, 0]);
  });

  it("the remote embedder sends many texts in bounded batches", async () => {
    const embedder = await open();
    service.requests.length = 0;
    const vectors = await embedder.embed(Array.from({ length: 200 }, (_, at) => `text ${at}`));
    expect(vectors).toHaveLength(200);
    expect(service.requests).toHaveLength(4);
    for (const { json } of service.requests) expect(json.input.length).toBeLessThanOrEqual(64);
  });

  it("the remote embedder learns its dimensions; the fingerprint covers address, model and dimensions", async () => {
    const embedder = await open();
    expect(embedder.dimensions).toBe(64);
    expect(embedder.fingerprint).toMatch(/^hashed\/[0-9a-f]{12}\/64$/);
    const other = await open({ model: "an other" });
    expect(other.fingerprint).toMatch(/^an-other\//);
    const elsewhere = await open({ baseUrl: service.baseUrl.replace("127.0.0.1", "localhost") });
    expect(elsewhere.fingerprint).not.toBe(embedder.fingerprint);
  });

  it.each([1, 8192])("the remote embedder takes vectors of %i dimensions", async (dimensions) => {
    const embedding = Array.from({ length: dimensions }, () => 2);
    service.misbehave = () => ({ body: { data: [{ index: 0, embedding }] } });
    expect((await open()).dimensions).toBe(dimensions);
  });

  it("the remote embedder refuses vectors of more than 8192 dimensions", async () => {
    const embedding = Array.from({ length: 8193 }, () => 2);
    service.misbehave = () => ({ body: { data: [{ index: 0, embedding }] } });
    await expect(open()).rejects.toMatchObject({ code: "embedding_answer" });
  });

  it("the remote embedder requests the configured dimensions and refuses others", async () => {
    expect((await open({ dimensions: 64 })).dimensions).toBe(64);
    expect(service.requests.at(-1)?.json.dimensions).toBe(64);
    await expect(open({ dimensions: 32 })).rejects.toMatchObject({
      code: "embedding_answer",
      message: expect.stringContaining("expected 32 dimensions, got 64"),
    });
  });

  it("the remote embedder retries a busy service, no sooner than Retry-After", async () => {
    const embedder = await open();
    let failures = 2;
    service.misbehave = () =>
      failures-- > 0 ? { status: 429, headers: { "retry-after": "0" }, body: { error: "busy" } } : undefined;
    expect(await embedder.embed(["x"])).toHaveLength(1);
    service.misbehave = () => ({ status: 503, headers: { "retry-after": "3600" } });
    await expect(embedder.embed(["x"])).rejects.toMatchObject({ code: "embedding_unreachable" });
  });

  const FAILURES: readonly [name: string, answer: Misbehaviour, code: string, message: RegExp][] = [
    ["a refusal", { status: 400, body: { error: { message: "too long" } } }, "embedding_refused", /too long/],
    ["no JSON", { body: "<html>" }, "embedding_answer", /no JSON/],
    ["no data", { body: { data: "none" } }, "embedding_answer", /expected data/],
    [
      "an empty vector",
      { body: { data: [{ index: 0, embedding: [] }] } },
      "embedding_answer",
      /expected data/,
    ],
    ["too few vectors", { body: { data: [] } }, "embedding_answer", /expected 1 vectors, got 0/],
    [
      "other dimensions",
      { body: { data: [{ index: 0, embedding: [1, 2] }] } },
      "embedding_answer",
      /expected 64 dimensions, got 2/,
    ],
    [
      "infinite numbers",
      { body: `{"data": [{"index": 0, "embedding": [1e999${", 0".repeat(63)}]}]}` },
      "embedding_answer",
      /./,
    ],
    [
      "a zero vector",
      { body: { data: [{ index: 0, embedding: Array.from({ length: 64 }, () => 0) }] } },
      "embedding_answer",
      /no direction/,
    ],
    [
      "an unknown index",
      { body: { data: [{ index: 7, embedding: Array.from({ length: 64 }, () => 1) }] } },
      "embedding_answer",
      /index 7/,
    ],
    ["a broken service", { status: 500 }, "embedding_unreachable", /answered 500/],
  ];
  it.each(FAILURES)("the error of the remote embedder describes %s", async (_name, answer, code, message) => {
    const embedder = await open({ attempts: 2 });
    service.misbehave = () => answer;
    await expect(embedder.embed(["x"])).rejects.toMatchObject({
      code,
      message: expect.stringMatching(message),
    });
    service.misbehave = () => undefined;
    expect(await embedder.embed(["x"])).toHaveLength(1);
  });

  it("the remote embedder times out after timeoutMs", async () => {
    const embedder = await open({ timeoutMs: 800, attempts: 1 });
    service.misbehave = () => "hang";
    await expect(embedder.embed(["x"])).rejects.toMatchObject({
      code: "embedding_unreachable",
      message: expect.stringContaining("0.8 s"),
    });
  });

  describe("queries", () => {
    let nowMs = 0;
    const openCooling = () => open({ timeoutMs: 300, cooldownMs: 30_000, nowMs: () => nowMs });

    it.each([
      ["hangs", "hang"],
      ["sends Retry-After", { status: 429, headers: { "retry-after": "20" } }],
      ["answers 500", { status: 500 }],
      ["does not answer in JSON", { body: "<html>" }],
    ] satisfies [string, Misbehaviour][])(
      "a query starts a cooldown if the model %s",
      async (_name, answer) => {
        const embedder = await openCooling();
        service.requests.length = 0;
        service.misbehave = () => answer;
        await expect(embedder.queries.embed(["why?"])).rejects.toMatchObject({
          code: expect.stringMatching(/^embedding_(unreachable|answer)$/),
        });
        for (let questions = 0; questions < 3; questions++) {
          await expect(embedder.queries.embed(["why?"])).rejects.toMatchObject({ code: "embedding_resting" });
        }
        expect(service.requests).toHaveLength(1);
        // The cooldown does not apply to documents.
        service.misbehave = () => undefined;
        expect(await embedder.embed(["text"])).toHaveLength(1);
        nowMs += 30_000;
        expect(await embedder.queries.embed(["why?"])).toHaveLength(1);
      },
    );

    it("a refused query starts no cooldown", async () => {
      const embedder = await openCooling();
      service.misbehave = ({ json }) => (json.input[0] === "bad" ? { status: 400 } : undefined);
      await expect(embedder.queries.embed(["bad"])).rejects.toMatchObject({ code: "embedding_refused" });
      expect(await embedder.queries.embed(["good"])).toHaveLength(1);
    });

    it("an aborted query starts no cooldown", async () => {
      const embedder = await openCooling();
      await expect(embedder.queries.embed(["why?"], AbortSignal.abort())).rejects.toThrow("aborted");
      expect(await embedder.queries.embed(["why?"])).toHaveLength(1);
    });
  });

  it("the remote embedder never reveals the key, even if the service echoes it", async () => {
    const wrong = "sk-another-secret";
    const failure: unknown = await open({ apiKey: () => wrong }).catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: "embedding_refused", message: expect.stringContaining("401") });
    expect(String(failure)).not.toContain(wrong);
  });

  it("the remote embedder sends no authorization header without a key", async () => {
    await expect(open({ apiKey: undefined })).rejects.toMatchObject({ code: "embedding_refused" });
    expect(service.requests.at(-1)?.headers["authorization"]).toBeUndefined();
  });
});

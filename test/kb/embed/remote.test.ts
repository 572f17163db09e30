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
  const facts = { baseUrl: service.baseUrl, model: "hashed", apiKey: KEY, delayMs: 1, timeoutMs: 5000 };
  return openRemoteEmbedder({ ...facts, ...options });
};
/** One that is closed behind the test. */
const open = async (options: Partial<RemoteEmbedderOptions> = {}): Promise<RemoteEmbedder> => {
  const embedder = await openAt(options);
  opened.push(embedder);
  return embedder;
};

embedderContract("OpenAI-compatible", async () => {
  // Longer than what the service's model reads, so that its own cut is what counts.
  const embedder = await openAt({});
  return { ...embedder, tokensMax: hashedEmbedder().tokensMax };
});

describe("the embedder behind an address", () => {
  it("sends model, texts and key, and takes the vectors by their index", async () => {
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

  it("asks for many texts in bounded batches", async () => {
    const embedder = await open();
    service.requests.length = 0;
    const vectors = await embedder.embed(Array.from({ length: 200 }, (_, at) => `text ${at}`));
    expect(vectors).toHaveLength(200);
    expect(service.requests).toHaveLength(4);
    for (const { json } of service.requests) expect(json.input.length).toBeLessThanOrEqual(64);
  });

  it("learns the dimensions, and names address, model and dimensions in the fingerprint", async () => {
    const embedder = await open();
    expect(embedder.dimensions).toBe(64);
    expect(embedder.fingerprint).toMatch(/^hashed\/[0-9a-f]{12}\/64$/);
    const other = await open({ model: "an other" });
    expect(other.fingerprint).toMatch(/^an-other\//);
    const elsewhere = await open({ baseUrl: service.baseUrl.replace("127.0.0.1", "localhost") });
    expect(elsewhere.fingerprint).not.toBe(embedder.fingerprint);
  });

  it("asks for the dimensions that are configured, and refuses others", async () => {
    expect((await open({ dimensions: 64 })).dimensions).toBe(64);
    expect(service.requests.at(-1)?.json.dimensions).toBe(64);
    await expect(open({ dimensions: 32 })).rejects.toMatchObject({
      code: "embedding_answer",
      message: expect.stringContaining("expected 32 dimensions, got 64"),
    });
  });

  it("tries again where the service is busy, no sooner than it asks", async () => {
    const embedder = await open();
    let failures = 2;
    service.misbehave = () =>
      failures-- > 0 ? { status: 429, headers: { "retry-after": "0" }, body: { error: "busy" } } : undefined;
    expect(await embedder.embed(["x"])).toHaveLength(1);
    service.misbehave = () => ({ status: 503, headers: { "retry-after": "3600" } });
    await expect(embedder.embed(["x"])).rejects.toMatchObject({ code: "embedding_unreachable" });
  });

  const FAILURES: readonly [name: string, answer: Misbehaviour, code: string, words: RegExp][] = [
    ["a refusal", { status: 400, body: { error: { message: "too long" } } }, "embedding_refused", /too long/],
    ["no JSON", { body: "<html>" }, "embedding_answer", /no JSON/],
    ["no data", { body: { data: "none" } }, "embedding_answer", /expected data/],
    ["too few vectors", { body: { data: [] } }, "embedding_answer", /expected 1 vectors, got 0/],
    [
      "other dimensions",
      { body: { data: [{ index: 0, embedding: [1, 2] }] } },
      "embedding_answer",
      /expected 64 dimensions, got 2/,
    ],
    [
      "numbers without end",
      { body: `{"data": [{"index": 0, "embedding": [1e999${", 0".repeat(63)}]}]}` },
      "embedding_answer",
      /./,
    ],
    [
      "nothing but zeros",
      { body: { data: [{ index: 0, embedding: Array.from({ length: 64 }, () => 0) }] } },
      "embedding_answer",
      /no direction/,
    ],
    [
      "an index that is not there",
      { body: { data: [{ index: 7, embedding: Array.from({ length: 64 }, () => 1) }] } },
      "embedding_answer",
      /index 7/,
    ],
    ["a broken service", { status: 500 }, "embedding_unreachable", /status 500/],
  ];
  it.each(FAILURES)("says what is wrong with %s", async (_name, answer, code, words) => {
    const embedder = await open({ attempts: 2 });
    service.misbehave = () => answer;
    await expect(embedder.embed(["x"])).rejects.toMatchObject({
      code,
      message: expect.stringMatching(words),
    });
    service.misbehave = () => undefined;
    expect(await embedder.embed(["x"])).toHaveLength(1);
  });

  it("waits no longer than its bound", async () => {
    const embedder = await open({ timeoutMs: 800, attempts: 1 });
    service.misbehave = () => "hang";
    await expect(embedder.embed(["x"])).rejects.toMatchObject({
      code: "embedding_unreachable",
      message: expect.stringContaining("800 ms"),
    });
  });

  describe("asked by a question", () => {
    let nowMs = 0;
    const rested = () => open({ timeoutMs: 300, restMs: 30_000, nowMs: () => nowMs });

    it.each([
      ["hangs", "hang"],
      ["asks to wait", { status: 429, headers: { "retry-after": "20" } }],
      ["is broken", { status: 500 }],
      ["answers something else", { body: "<html>" }],
    ] satisfies [string, Misbehaviour][])(
      "is asked once where it %s, and then left alone",
      async (_name, answer) => {
        const embedder = await rested();
        service.requests.length = 0;
        service.misbehave = () => answer;
        await expect(embedder.queries.embed(["why?"])).rejects.toMatchObject({
          code: expect.stringMatching(/^embedding_(unreachable|answer)$/),
        });
        for (let questions = 0; questions < 3; questions++) {
          await expect(embedder.queries.embed(["why?"])).rejects.toMatchObject({ code: "embedding_resting" });
        }
        expect(service.requests).toHaveLength(1);
        // Texts of documents do not wait for the rest to be over.
        service.misbehave = () => undefined;
        expect(await embedder.embed(["text"])).toHaveLength(1);
        nowMs += 30_000;
        expect(await embedder.queries.embed(["why?"])).toHaveLength(1);
      },
    );

    it("is asked on where it refuses one question: others it may take", async () => {
      const embedder = await rested();
      service.misbehave = ({ json }) => (json.input[0] === "bad" ? { status: 400 } : undefined);
      await expect(embedder.queries.embed(["bad"])).rejects.toMatchObject({ code: "embedding_refused" });
      expect(await embedder.queries.embed(["good"])).toHaveLength(1);
    });

    it("is asked on where one was given up", async () => {
      const embedder = await rested();
      await expect(embedder.queries.embed(["why?"], AbortSignal.abort())).rejects.toThrow("aborted");
      expect(await embedder.queries.embed(["why?"])).toHaveLength(1);
    });
  });

  it("never tells the key, not even where the service does", async () => {
    const wrong = "sk-another-secret";
    const failure: unknown = await open({ apiKey: wrong }).catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: "embedding_refused", message: expect.stringContaining("401") });
    expect(String(failure)).not.toContain(wrong);
  });

  it("sends no key where there is none", async () => {
    await expect(open({ apiKey: undefined })).rejects.toMatchObject({ code: "embedding_refused" });
    expect(service.requests.at(-1)?.headers["authorization"]).toBeUndefined();
  });
});

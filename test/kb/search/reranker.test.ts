import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { openReranker } from "../../../src/kb/search/reranker.ts";
import type { Reranker, RerankerOptions } from "../../../src/kb/search/reranker.ts";
import { openModelService } from "../../fakes/model-service.ts";
import type { Misbehaviour, ModelService } from "../../fakes/model-service.ts";

const KEY = "rk-secret-of-the-tests";
const DOCUMENTS = ["a dog barks", "the cat sleeps", "the cat and the dog"];
let service: ModelService;
let nowMs = 0;
const changes: (string | undefined)[] = [];
const opened: Reranker[] = [];
beforeAll(async () => {
  service = await openModelService(KEY);
});
afterEach(async () => {
  service.misbehave = () => undefined;
  service.requests.length = 0;
  changes.length = 0;
  for (const reranker of opened.splice(0)) await reranker.close();
});
afterAll(() => service.close());

const open = (options: Partial<RerankerOptions> = {}): Reranker => {
  const reranker = openReranker({
    url: `${service.baseUrl}/rerank`,
    model: "overlap",
    apiKey: () => KEY,
    nowMs: () => nowMs,
    onChange: (problem) => changes.push(problem?.code),
    ...options,
  });
  opened.push(reranker);
  return reranker;
};

describe("openReranker", () => {
  it("the reranker returns judgements in the order of the documents", async () => {
    const reranker = open();
    expect(reranker.state().state).toBe("idle");
    expect(await reranker.judge("cat dog", DOCUMENTS)).toEqual([0.5, 0.5, 1]);
    expect(reranker.state().state).toBe("ready");
    expect(service.requests[0]?.json).toEqual({
      model: "overlap",
      query: "cat dog",
      documents: DOCUMENTS,
      top_n: 3,
    });
  });

  it("the reranker accepts a bare list of scores and returns undefined for a missing one", async () => {
    const reranker = open();
    service.misbehave = () => ({ body: [{ index: 2, score: 0.7 }] });
    expect(await reranker.judge("cat", DOCUMENTS)).toEqual([undefined, undefined, 0.7]);
  });

  it("the reranker treats all scores as logits after one outside [0, 1]", async () => {
    const reranker = open();
    const listed = (...scores: number[]): Misbehaviour => ({
      body: scores.map((score, index) => ({ index, score })),
    });
    service.misbehave = () => listed(0, 2, -6);
    const judged = (await reranker.judge("cat", DOCUMENTS)) ?? [];
    expect(judged.map((score) => score?.toFixed(3))).toEqual(["0.500", "0.881", "0.002"]);
    service.misbehave = () => listed(0, 0, 0);
    expect(await reranker.judge("cat", DOCUMENTS)).toEqual([0.5, 0.5, 0.5]);
  });

  it("the reranker sends no request without documents", async () => {
    expect(await open().judge("cat", [])).toEqual([]);
    expect(service.requests).toHaveLength(0);
  });

  const FAILURES: readonly [name: string, answer: Misbehaviour, code: string][] = [
    ["does not answer", "hang", "reranker_unreachable"],
    ["answers 500", { status: 500 }, "reranker_unreachable"],
    ["answers 422", { status: 422, body: { detail: "no such model" } }, "reranker_refused"],
    ["does not answer in JSON", { body: "<html>" }, "reranker_answer"],
    ["returns no judgements", { body: { results: [] } }, "reranker_answer"],
    [
      "judges an unknown document",
      { body: { results: [{ index: 3, relevance_score: 1 }] } },
      "reranker_answer",
    ],
  ];
  it.each(FAILURES)(
    "the reranker reports the failure and cools down if it %s",
    async (_name, answer, code) => {
      const reranker = open({ timeoutMs: answer === "hang" ? 800 : 5000, cooldownMs: 1000 });
      service.misbehave = () => answer;
      expect(await reranker.judge("cat", DOCUMENTS)).toBeUndefined();
      expect(changes).toEqual([code]);
      expect(reranker.state()).toMatchObject({ state: "failing" });
      expect(await reranker.judge("cat", DOCUMENTS)).toBeUndefined();
      expect(service.requests).toHaveLength(1);

      service.misbehave = () => undefined;
      nowMs += 1001;
      expect(await reranker.judge("cat", DOCUMENTS)).toHaveLength(3);
      expect(reranker.state().state).toBe("ready");
      expect(changes).toEqual([code, undefined]);
    },
  );

  it("the reranker aborts a request in flight when it closes, and reports no failure", async () => {
    const reranker = open();
    service.misbehave = () => "hang";
    const call = reranker.judge("cat", DOCUMENTS);
    await reranker.close();
    expect(await call).toBeUndefined();
    expect(changes).toEqual([]);
  });
});

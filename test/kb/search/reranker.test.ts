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
    apiKey: KEY,
    nowMs: () => nowMs,
    onChange: (problem) => changes.push(problem?.code),
    ...options,
  });
  opened.push(reranker);
  return reranker;
};

describe("the reranker behind an address", () => {
  it("judges documents in their order", async () => {
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

  it("takes a list with scores, and says nothing of what was not judged", async () => {
    const reranker = open();
    service.misbehave = () => ({ body: [{ index: 2, score: 0.7 }] });
    expect(await reranker.judge("cat", DOCUMENTS)).toEqual([undefined, undefined, 0.7]);
  });

  it("takes scores beyond 0 and 1 for logits, from then on all of them", async () => {
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

  it("is not asked for nothing", async () => {
    expect(await open().judge("cat", [])).toEqual([]);
    expect(service.requests).toHaveLength(0);
  });

  const FAILURES: readonly [name: string, answer: Misbehaviour, code: string][] = [
    ["answers nothing", "hang", "reranker_unreachable"],
    ["is broken", { status: 500 }, "reranker_unreachable"],
    ["refuses", { status: 422, body: { detail: "no such model" } }, "reranker_refused"],
    ["answers no JSON", { body: "<html>" }, "reranker_answer"],
    ["judges nothing", { body: { results: [] } }, "reranker_answer"],
    [
      "judges what was not sent",
      { body: { results: [{ index: 3, relevance_score: 1 }] } },
      "reranker_answer",
    ],
  ];
  it.each(FAILURES)("gives no judgement when it %s, says so and rests", async (_name, answer, code) => {
    const reranker = open({ timeoutMs: answer === "hang" ? 800 : 5000, restMs: 1000 });
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
  });

  it("judges nothing after its end", async () => {
    const reranker = open();
    service.misbehave = () => "hang";
    const call = reranker.judge("cat", DOCUMENTS);
    await reranker.close();
    expect(await call).toBeUndefined();
    expect(changes).toEqual([]);
  });
});

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Embedder } from "../../../src/kb/embed/embedder.ts";
import { embedSentences } from "../../../src/kb/ingest/sentence-vectors.ts";
import { search } from "../../../src/kb/search/search.ts";
import { openSqliteStore } from "../../../src/kb/store/sqlite/open.ts";
import type { Store } from "../../../src/kb/store/store.ts";
import type { Account } from "../../../src/kb/store/accounts.ts";
import type { Scope } from "../../../src/kb/store/search-index.ts";
import { DEFAULT_SETTINGS } from "../../../src/wire/primitives.ts";
import { hashedEmbedder } from "../../fakes/hashed-embedder.ts";
import { unit, wordsOnly } from "../store/store-fixture.ts";
import { createEmbedded } from "../store/embedded.ts";

/** Gives all texts but a sentence about the heron the same vector, so that chunk vectors carry no information. */
const embedder: Embedder = {
  ...hashedEmbedder("heron"),
  dimensions: 2,
  embed: async (texts) =>
    texts.map((text) => (text.startsWith("The heron") && text.length < 60 ? unit([0.1, 1]) : unit([1, 0.1]))),
};

const QUERY = "The heron waits by the river";
const LIST = "River river river, heron heron heron, waits waits waits: the list of words.";
const STORY =
  "In the morning fog lies over the fields. The heron waits by the water. Then it flies away to the hills.";

describe("high_accuracy", () => {
  let store: Store;
  let account: Account;
  let scope: Scope;
  beforeAll(async () => {
    store = await openSqliteStore();
    account = await store.records.ensureAccount("local");
    const collection = (await store.records.collections(account.id)).find(
      ({ tier }) => tier === "high_accuracy",
    );
    scope = { accountId: account.id, collectionId: collection?.id ?? "", ownerId: "ann" };
    await create("1", LIST, true);
    await create("2", STORY, true);
    await create("3", "Nothing of it here.", true);
  });
  afterAll(() => store.close());

  const create = async (
    id: string,
    content: string,
    isWhole: boolean,
    ownerId = "ann",
    by = embedder,
  ): Promise<void> => {
    const { spans } = wordsOnly(content);
    const texts = spans.map(({ start, end }) => content.slice(start, end));
    await createEmbedded(
      store,
      {
        accountId: account.id,
        id: id.padStart(24, "0"),
        tier: "high_accuracy",
        ownerId,
        origin: "content",
        title: "",
        description: "",
        url: null,
        content,
        settings: DEFAULT_SETTINGS,
        createdAt: "2026-01-01T00:00:00.000Z",
      },
      {
        spans,
        vectors: await by.embed(texts),
        fingerprint: by.fingerprint,
        sentences: isWhole ? await embedSentences(by, texts) : undefined,
      },
    );
  };
  const ask = async (options: {
    by?: Embedder | undefined;
    within?: Scope;
    judge?: (
      query: string,
      documents: readonly string[],
    ) => Promise<readonly (number | undefined)[] | undefined>;
  }) => {
    const request = { scope: options.within ?? scope, tier: "high_accuracy", query: QUERY, topK: 5 } as const;
    return search(
      store.index,
      "by" in options ? options.by : embedder,
      { ...request, scoreMin: undefined },
      options.judge && { judge: options.judge },
    );
  };
  const contents = async (options: Parameters<typeof ask>[0] = {}): Promise<string[]> =>
    (await ask(options)).results.map(({ payload }) => payload.content);

  it("high_accuracy lifts the chunk with the nearest sentence above the chunk with more query words", async () => {
    const request = { scope, tier: "moderate", query: QUERY, topK: 5, scoreMin: undefined } as const;
    const { results } = await search(store.index, embedder, request);
    expect(results[0]?.payload.content).toBe(LIST);
    expect((await contents())[0]).toBe(STORY);
  });

  it("high_accuracy keeps the fused order while sentence vectors are pending", async () => {
    await create("4", LIST, false, "bob");
    await create("5", STORY, false, "bob");
    const within = { ...scope, ownerId: "bob" };
    expect((await contents({ within }))[0]).toBe(LIST);
  });

  it("high_accuracy ranks the chunk of the better document first among equal chunks", async () => {
    const parts = (second: string): string => `The river is high in spring.\n\n${second}`;
    const carol = { ownerId: "carol" };
    await create("6", parts("Nothing is to be said of it."), false, carol.ownerId);
    await create("7", parts("The heron waits there."), false, carol.ownerId);
    const within = { ...scope, ...carol };
    const request = { scope: within, query: "heron river", topK: 5, scoreMin: undefined } as const;
    const scoresOf = async (tier: "moderate" | "high_accuracy"): Promise<[other: number, heron: number]> => {
      const { results } = await search(store.index, undefined, { ...request, tier });
      const scoreOf = (id: string): number =>
        results.find(
          ({ payload }) => payload.resourceId.endsWith(id) && payload.content.startsWith("The river"),
        )?.score ?? -1;
      return [scoreOf("6"), scoreOf("7")];
    };
    const [other, heron] = await scoresOf("moderate");
    expect(heron).toBe(other);
    const [below, above] = await scoresOf("high_accuracy");
    expect(above).toBeGreaterThan(below);
    // Within one document it changes nothing.
    const one = { accountId: account.id, resourceId: "7".padStart(24, "0") };
    const { results } = await search(store.index, undefined, {
      ...request,
      scope: one,
      tier: "high_accuracy",
    });
    expect(results.map(({ payload }) => payload.content)).toEqual([
      "The heron waits there.",
      "The river is high in spring.",
    ]);
  });

  it("high_accuracy omits a chunk whose best sentence takes its cosine down to noise", async () => {
    // 0.24 for the query and the chunk, 0 for the query and its sentences: 0.18 together, below the noise floor.
    const chunk = "The first sentence of it is long enough. The second sentence is as long as the first.";
    const vectorOf = (text: string): Float32Array =>
      text === chunk ? unit([0.24, 0.97]) : unit(text === "Elsewhere" ? [1, 0] : [0, 1]);
    const faint: Embedder = { ...embedder, embed: async (texts) => texts.map(vectorOf) };
    await create("8", chunk, true, "dora", faint);
    const within = { ...scope, ownerId: "dora" };
    const request = { scope: within, query: "Elsewhere", topK: 5, scoreMin: undefined } as const;
    const moderate = await search(store.index, faint, { ...request, tier: "moderate" });
    expect(moderate.results).toHaveLength(1);
    expect((await search(store.index, faint, { ...request, tier: "high_accuracy" })).results).toEqual([]);
  });

  it("high_accuracy has the reranker judge the texts of the top hits instead of their sentences", async () => {
    const asked: string[] = [];
    const judge = async (query: string, documents: readonly string[]): Promise<number[]> => {
      asked.push(query, ...documents);
      return documents.map((text) => (text.startsWith("Nothing") ? 0.9 : 0.1));
    };
    expect((await contents({ judge }))[0]).toBe("Nothing of it here.");
    expect(asked[0]).toBe(QUERY);
    expect(asked.slice(1).toSorted()).toEqual([LIST, STORY, "Nothing of it here."].toSorted());
  });

  it("high_accuracy omits hits that the reranker did not judge", async () => {
    const judge = async (_query: string, documents: readonly string[]): Promise<(number | undefined)[]> =>
      documents.map((text) => (text === STORY ? 0.9 : undefined));
    expect(await contents({ judge })).toEqual([STORY]);
  });

  it("high_accuracy falls back to sentences if the reranker does not answer", async () => {
    expect((await contents({ judge: async () => undefined }))[0]).toBe(STORY);
  });

  it.each([
    ["nothing if the reranker judges", {}, true, undefined],
    ["sentences if the reranker does not answer", {}, false, "sentences"],
    ["nothing if there is no reranker", {}, undefined, undefined],
    ["words if there is no vector of the query", { by: undefined }, undefined, "words"],
    ["words if neither model answers", { by: undefined }, false, "words"],
    ["words if the reranker alone answers", { by: undefined }, true, "words"],
  ] as const)("high_accuracy reports as its fallback %s", async (_name, by, judges, fallback) => {
    const judge = async (_query: string, documents: readonly string[]): Promise<number[] | undefined> =>
      judges === true ? documents.map(() => 0.5) : undefined;
    expect((await ask({ ...by, ...(judges !== undefined && { judge }) })).fallback).toBe(fallback);
  });

  it("high_accuracy answers by words without an embedding model, and still reranks", async () => {
    expect((await contents({ by: undefined }))[0]).toBe(LIST);
    const judge = async (_query: string, documents: readonly string[]): Promise<number[]> =>
      documents.map((text) => text.length / 110);
    expect((await contents({ by: undefined, judge }))[0]).toBe(STORY);
  });

  it("high_accuracy returns descending scores within [0, 1], with and without a reranker", async () => {
    for (const judge of [
      undefined,
      async (_query: string, documents: readonly string[]) => documents.map((_, at) => at / 3),
    ]) {
      const scores = (await ask(judge === undefined ? {} : { judge })).results.map(({ score }) => score);
      expect(scores).toEqual(scores.toSorted((a, b) => b - a));
      for (const score of scores) expect(score).toBeGreaterThan(0);
      for (const score of scores) expect(score).toBeLessThan(1);
    }
  });
});

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Embedder } from "../../../src/kb/embed/embedder.ts";
import { search } from "../../../src/kb/search/search.ts";
import { openSqliteStore } from "../../../src/kb/store/sqlite/open.ts";
import type { Store } from "../../../src/kb/store/store.ts";
import type { Account } from "../../../src/kb/store/accounts.ts";
import type { Scope } from "../../../src/kb/store/search-index.ts";
import { DEFAULT_SETTINGS, type Tier } from "../../../src/wire/primitives.ts";
import { unit, wordsOnly } from "../store/store-fixture.ts";
import { createEmbedded } from "../store/embedded.ts";

const NOW = "2026-01-01T00:00:00.000Z";
/** Axes of the embedder below: synonyms share an axis. */
const AXES = ["cat kitten feline", "dog puppy hound", "car vehicle engine", "bread loaf bake"];

/** Counts the words of each axis. */
const embedder: Embedder = {
  fingerprint: "axes",
  dimensions: AXES.length + 1,
  tokensMax: 100,
  embed: async (texts) =>
    texts.map((text) => {
      const words = text.toLowerCase().match(/[a-z]+/g) ?? [];
      const counts = AXES.map((axis) => words.filter((word) => axis.split(" ").includes(word)).length);
      return unit([...counts, 0.1]);
    }),
  close: async () => undefined,
};

const TEXTS = [
  "A cat sleeps on the sofa.",
  "The kitten plays with wool.",
  "My dog barks at the hound next door.",
  "The vehicle has a new engine.",
  "We bake bread on Sunday.",
  "Nothing to see here, only words.",
];

describe("search", () => {
  let store: Store;
  let account: Account;
  const scopes = new Map<Tier, Scope>();

  beforeAll(async () => {
    store = await openSqliteStore();
    account = await store.records.ensureAccount("local");
    for (const { id: collectionId, tier } of await store.records.collections(account.id)) {
      scopes.set(tier, { accountId: account.id, collectionId, ownerId: "ann" });
      for (const [at, content] of TEXTS.entries()) await create(tier, `${tier.length}${at}`, content, "ann");
    }
  });
  afterAll(() => store.close());

  const create = async (tier: Tier, id: string, content: string, ownerId: string): Promise<void> => {
    const vectors = tier === "fastest" ? undefined : await embedder.embed([content]);
    const texts = {
      title: `Text ${id.slice(-1)}`,
      description: "",
      url: null,
      content,
      settings: DEFAULT_SETTINGS,
    };
    await createEmbedded(
      store,
      {
        accountId: account.id,
        id: id.padStart(24, "0"),
        tier,
        ownerId,
        origin: "content",
        ...texts,
        createdAt: NOW,
      },
      { ...wordsOnly(content), vectors, fingerprint: vectors && embedder.fingerprint },
    );
  };
  const ask = (
    query: string,
    tier: Tier,
    options: { topK?: number; scoreMin?: number; by?: Embedder | undefined } = {},
  ) => {
    const scope = scopes.get(tier) ?? { accountId: account.id, resourceId: "" };
    const { topK = 5, scoreMin } = options;
    return search(store.index, "by" in options ? options.by : embedder, {
      scope,
      tier,
      query,
      topK,
      scoreMin,
    });
  };
  const contents = async (...parts: Parameters<typeof ask>): Promise<string[]> =>
    (await ask(...parts)).results.map(({ payload }) => payload.content);

  it("fastest finds words, not meanings", async () => {
    expect(await contents("cat", "fastest")).toEqual([TEXTS[0]]);
    expect(await contents("feline", "fastest")).toEqual([]);
  });

  it("moderate finds both words and meanings", async () => {
    expect((await contents("feline", "moderate", { topK: 2 })).toSorted()).toEqual([TEXTS[0], TEXTS[1]]);
    expect((await contents("cat", "moderate"))[0]).toBe(TEXTS[0]);
  });

  it("a search returns results with all fields, and their contents as text", async () => {
    const { results, text } = await ask("dog hound", "moderate", { topK: 2 });
    expect(results[0]).toMatchObject({
      version: 1,
      payload: { content: TEXTS[2], ownerId: "ann", resourceId: "82".padStart(24, "0") },
    });
    expect(text).toBe(results.map(({ payload }) => payload.content).join("\n\n"));
  });

  it("a search returns at most topK results by descending score within [0, 1]", async () => {
    for (const tier of ["fastest", "moderate"] as const) {
      const { results } = await ask("the cat and the dog bake words", tier, { topK: 4 });
      expect(results).toHaveLength(4);
      const scores = results.map(({ score }) => score);
      expect(scores).toEqual(scores.toSorted((a, b) => b - a));
      for (const score of scores) {
        expect(score).toBeGreaterThanOrEqual(0);
        expect(score).toBeLessThanOrEqual(1);
      }
    }
  });

  it("a search returns results from scoreMin on, inclusive", async () => {
    const { results } = await ask("cat sleeps on the sofa with wool", "fastest");
    const [best, second] = results;
    const limited = await ask("cat sleeps on the sofa with wool", "fastest", { scoreMin: best?.score ?? 1 });
    expect(limited.results).toEqual([best]);
    expect(second?.score).toBeLessThan(best?.score ?? 0);
    expect((await ask("cat", "fastest", { scoreMin: 1 })).results).toEqual([]);
  });

  it("a good answer scores above 0.5 and a poor one below, in each tier", async () => {
    for (const tier of ["fastest", "moderate"] as const) {
      expect((await ask("cat sleeps sofa", tier)).results[0]?.score).toBeGreaterThan(0.5);
      const poor = (await ask("sofa quantum chromodynamics lecture", tier)).results;
      const cat = poor.find(({ payload }) => payload.content === TEXTS[0]);
      expect(cat?.score).toBeLessThan(0.5);
    }
  });

  it("a search orders equal scores by id", async () => {
    const { results } = await ask("text", "fastest", { topK: 6 });
    const equal = results.filter(({ score }) => score === results[0]?.score).map(({ id }) => id);
    expect(equal).toEqual(equal.toSorted());
  });

  it("chunks of equal rank score the same in any order of storage", async () => {
    // Equally long and equally rare here, so of equal rank; but one of the words is common in general.
    const [rare, common] = ["An impeller hums.", "The people hums."];
    const scoresOf = async (ownerId: string, texts: readonly string[]) => {
      for (const [at, content] of texts.entries())
        await create("fastest", `${ownerId}${at}`, content, ownerId);
      const scope = { ...scopes.get("fastest"), ownerId } as Scope; // all of them have an owner
      const asked = {
        scope,
        tier: "fastest" as const,
        query: "impeller people",
        topK: 5,
        scoreMin: undefined,
      };
      const { results } = await search(store.index, undefined, asked);
      return results.map(({ score, payload }) => [payload.content, score]);
    };
    const scores = await scoresOf("a1", [rare, common]);
    expect(scores.map(([content]) => content)).toEqual([rare, common]);
    expect(await scoresOf("b1", [common, rare])).toEqual(scores);
  });

  it("moderate answers by words without a model, and reports it", async () => {
    const { results, fallback } = await ask("cat", "moderate", { by: undefined });
    expect(results.map(({ payload }) => payload.content)).toEqual([TEXTS[0]]);
    expect(fallback).toBe("words");
  });

  it("moderate answers by words if the model fails, and reports it", async () => {
    const failing: Embedder = { ...embedder, embed: () => Promise.reject(new Error("out of memory")) };
    const { results, fallback } = await ask("cat", "moderate", { by: failing });
    expect(results).toHaveLength(1);
    expect(fallback).toBe("words");
  });

  it("a search that did what its tier promises reports no fallback", async () => {
    expect(await ask("cat", "fastest", { by: undefined })).not.toHaveProperty("fallback");
    expect(await ask("cat", "moderate")).not.toHaveProperty("fallback");
  });

  it("a search of an unknown scope returns nothing", async () => {
    const scope = { accountId: account.id, resourceId: "f".repeat(24) };
    const request = { scope, tier: "moderate", query: "cat", topK: 5, scoreMin: undefined } as const;
    expect(await search(store.index, embedder, request)).toMatchObject({ results: [], text: "", chunks: [] });
  });

  it("a search finds a resource at every moment of its updates", async () => {
    const at = { accountId: account.id, id: "a".repeat(24) };
    const content = (version: number): string => `The ocelot of version ${version}.`;
    await createEmbedded(
      store,
      {
        ...at,
        tier: "fastest",
        ownerId: "updated",
        origin: "content",
        title: "",
        description: "",
        url: null,
        content: content(0),
        settings: DEFAULT_SETTINGS,
        createdAt: NOW,
      },
      wordsOnly(content(0)),
    );
    const done = new AbortController();
    const updates = async (): Promise<void> => {
      for (let version = 1; version < 150; version++) {
        const change = { ...at, content: content(version), nowIso: NOW };
        await store.records.updateResource(change, wordsOnly(change.content));
      }
      done.abort();
    };
    const found: number[] = [];
    const searches = async (): Promise<void> => {
      const scope = { accountId: account.id, resourceId: at.id };
      while (!done.signal.aborted) {
        const request = { scope, tier: "fastest", query: "ocelot", topK: 5, scoreMin: undefined } as const;
        found.push((await search(store.index, undefined, request)).results.length);
      }
    };
    await Promise.all([updates(), searches(), searches(), searches()]);
    expect(new Set(found)).toEqual(new Set([1]));
  });
});

import { assert, asyncProperty, constantFrom, integer } from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { search } from "../../../src/kb/search/search.ts";
import { openSqliteStore } from "../../../src/kb/store/sqlite/open.ts";
import type { Store } from "../../../src/kb/store/store.ts";
import type { Account } from "../../../src/kb/store/accounts.ts";
import type { Scope } from "../../../src/kb/store/search-index.ts";
import { DEFAULT_SETTINGS, type Tier } from "../../../src/wire/primitives.ts";
import { hashedEmbedder } from "../../fakes/hashed-embedder.ts";
import { wordsOnly } from "../store/store-fixture.ts";
import { createEmbedded } from "../store/embedded.ts";

const embedder = hashedEmbedder("pending");
const TIERS = ["fastest", "moderate", "high_accuracy"] as const;
const WITH_VECTORS = ["moderate", "high_accuracy"] as const;
const QUERY = "replace the impeller of the bilge pump";
const ANSWER = "How to replace the impeller of the bilge pump: close the valve, then open the housing.";
const OTHERS = [
  "The harbour office opens at nine, and the pump at the pier is out of order.",
  "Sails are washed once a year.",
  "The keel was painted in spring.",
];

describe("pending vectors", () => {
  let store: Store;
  let account: Account;
  let made = 0;
  beforeAll(async () => {
    store = await openSqliteStore();
    account = await store.records.ensureAccount("local");
  });
  afterAll(() => store.close());

  const create = async (tier: Tier, ownerId: string, content: string, by?: string): Promise<void> => {
    const vectors = by === undefined ? undefined : await embedder.embed([content]);
    // Ids fall while refs rise, so that order by ref differs from order by id.
    const id = (10 ** 6 - ++made).toString(16).padStart(24, "0");
    const resource = { accountId: account.id, id, tier, ownerId, origin: "content" as const };
    const texts = { title: "Boat", description: "", url: null, content, settings: DEFAULT_SETTINGS };
    await createEmbedded(
      store,
      { ...resource, ...texts, createdAt: "2026-01-01T00:00:00.000Z" },
      { ...wordsOnly(content), vectors, fingerprint: vectors && by },
    );
  };
  const ask = async (tier: Tier, ownerId: string, query: string, topK = 10, hasModel = true) => {
    const collection = (await store.records.collections(account.id)).find((each) => each.tier === tier);
    const scope: Scope = { accountId: account.id, collectionId: collection?.id ?? "", ownerId };
    const request = { scope, tier, query, topK, scoreMin: undefined };
    return (await search(store.index, hasModel ? embedder : undefined, request)).results;
  };

  it.each(WITH_VECTORS)(
    "ranks a chunk without a vector before chunks with fewer query words, in %s",
    async (tier) => {
      for (const text of OTHERS) await create(tier, "ranked", text, embedder.fingerprint);
      await create(tier, "ranked", ANSWER);
      expect((await ask(tier, "ranked", QUERY))[0]?.payload.content).toBe(ANSWER);
    },
  );

  it.each(WITH_VECTORS)("scores a chunk without a vector as fastest does, in %s", async (tier) => {
    const owner = `scored in ${tier}`;
    for (const text of [...OTHERS, ANSWER]) await create("fastest", owner, text);
    for (const text of OTHERS) await create(tier, owner, text, embedder.fingerprint);
    await create(tier, owner, ANSWER);
    const [byWords] = await ask("fastest", owner, QUERY);
    const [pending] = await ask(tier, owner, QUERY);
    expect(pending?.payload.content).toBe(ANSWER);
    expect(pending?.score).toBeCloseTo(byWords?.score ?? -1, 6);
  });

  it.each(WITH_VECTORS)(
    "scores as without a model while no chunk has a vector of the new model, in %s",
    async (tier) => {
      for (const text of [...OTHERS, ANSWER]) await create(tier, "changing", text, "an earlier model");
      const without = await ask(tier, "changing", QUERY, 10, false);
      const changing = await ask(tier, "changing", QUERY);
      expect(changing.map(({ payload }) => payload.content)).toEqual(
        without.map(({ payload }) => payload.content),
      );
      for (const [at, { score }] of changing.entries())
        expect(score).toBeCloseTo(without[at]?.score ?? -1, 6);
    },
  );

  it("returns a prefix of the larger answer for a smaller top_k, ties by id", async () => {
    const ties = [...Array.from({ length: 12 }, () => "The tide turns at noon."), ...OTHERS, ANSWER];
    for (const tier of TIERS) {
      for (const [at, text] of [...ties, ...ties].entries()) {
        await create(
          tier,
          "tied",
          text,
          tier === "fastest" || at % 3 === 0 ? undefined : embedder.fingerprint,
        );
      }
    }
    const queries = constantFrom("tide", "the tide at noon", QUERY, "pump", "the");
    const sizes = integer({ min: 1, max: 40 });
    await assert(
      asyncProperty(constantFrom(...TIERS), queries, sizes, sizes, async (tier, query, a, b) => {
        const [less, more] = [
          await ask(tier, "tied", query, Math.min(a, b)),
          await ask(tier, "tied", query, Math.max(a, b)),
        ];
        expect(more.slice(0, less.length)).toEqual(less);
        const ordered = more.toSorted((x, y) => y.score - x.score || (x.id < y.id ? -1 : 1));
        expect(more).toEqual(ordered);
      }),
      { numRuns: 60 },
    );
  });
});

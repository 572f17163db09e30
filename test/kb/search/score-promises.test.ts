import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { search } from "../../../src/kb/search/search.ts";
import { openSqliteStore } from "../../../src/kb/store/sqlite/open.ts";
import type { Store } from "../../../src/kb/store/store.ts";
import type { Account } from "../../../src/kb/store/accounts.ts";
import { DEFAULT_SETTINGS, type Tier } from "../../../src/wire/primitives.ts";
import type { Reranker } from "../../../src/kb/search/reranker.ts";
import type { Embedder } from "../../../src/kb/embed/embedder.ts";
import { embedSentences } from "../../../src/kb/ingest/sentence-vectors.ts";
import { unit, wordsOnly } from "../store/store-fixture.ts";
import { createEmbedded } from "../store/embedded.ts";

const TIERS = ["fastest", "moderate", "high_accuracy"] as const;
/** Vocabulary of filler documents, which shares words with the questions. */
const PLACES = ["harbour", "mill", "bridge", "market", "valley", "tower", "garden", "station"];
const THINGS = ["pump", "valve", "ladder", "engine", "lantern", "barrel", "compass", "anchor"];
const ANSWERS = [
  "How to replace the impeller of the bilge pump: close the valve, then open the housing.",
  "The clock of the tower is wound every four hours. The lighthouse keeper winds the clockwork of the lantern.",
  "Tide tables of the harbour: high water comes fifty minutes later each day.",
];
const QUESTIONS = [
  "replace the impeller of the bilge pump",
  "who winds the clockwork of the lantern",
  "how much later does high water come to the harbour each day",
];
const FUNCTION_WORDS = ["the of and to", "what is it that they are", "to be or not to be", "der die das und"];
/** Questions about other subjects. */
const FOREIGN = [
  "photosynthesis in alpine mosses",
  "sourdough hydration percentages",
  "quantum chromodynamics on a lattice",
];

/** Hashes words into dimensions: unrelated texts have a cosine of about 0.1. */
const embedder: Embedder = {
  fingerprint: "topics",
  dimensions: 64,
  tokensMax: 256,
  embed: async (texts) =>
    texts.map((text) => {
      const vector = Array.from({ length: 64 }, () => 0);
      for (const word of text.toLowerCase().match(/[a-z]{4,}/g) ?? []) {
        let sum = 7;
        for (const letter of word) sum = (sum * 31 + letter.charCodeAt(0)) % 1009;
        vector[sum % 64] = (vector[sum % 64] ?? 0) + 1;
      }
      return unit(vector.some((value) => value > 0) ? vector : vector.map(() => 1));
    }),
  close: async () => undefined,
};

describe("scores", () => {
  let store: Store;
  let account: Account;
  let made = 0;
  beforeAll(async () => {
    store = await openSqliteStore();
    account = await store.records.ensureAccount("local");
    for (const tier of TIERS) {
      for (const ownerId of ["three", "ten thousand"])
        for (const text of ANSWERS) await create(tier, ownerId, [text]);
      for (let at = 0; at < 100; at++)
        await create(
          tier,
          "ten thousand",
          Array.from({ length: 100 }, (_, n) => filler(at * 100 + n)),
        );
    }
  }, 120_000);
  afterAll(() => store.close());

  /** Makes a distinct text of words that hundreds of texts share. */
  const filler = (at: number): string =>
    `The ${PLACES[at % 8]} has a ${THINGS[Math.floor(at / 8) % 8]} number ${at}, and water in the ${PLACES[Math.floor(at / 64) % 8]}.`;
  const create = async (tier: Tier, ownerId: string, paragraphs: readonly string[]): Promise<void> => {
    const content = paragraphs.join("\n\n");
    const vectors = tier === "fastest" ? undefined : await embedder.embed(paragraphs);
    const id = (++made).toString(16).padStart(24, "0");
    const resource = {
      accountId: account.id,
      id,
      tier,
      ownerId,
      origin: "content" as const,
      title: "",
      description: "",
    };
    await createEmbedded(
      store,
      { ...resource, url: null, content, settings: DEFAULT_SETTINGS, createdAt: "2026-01-01T00:00:00.000Z" },
      {
        ...wordsOnly(content),
        vectors,
        fingerprint: vectors && embedder.fingerprint,
        sentences: tier === "high_accuracy" ? await embedSentences(embedder, paragraphs) : undefined,
      },
    );
  };
  const ask = async (
    tier: Tier,
    ownerId: string,
    query: string,
    { topK = 100, reranker }: { topK?: number; reranker?: Pick<Reranker, "judge"> } = {},
  ) => {
    const collection = (await store.records.collections(account.id)).find((each) => each.tier === tier);
    const scope = { accountId: account.id, collectionId: collection?.id ?? "", ownerId };
    return (await search(store.index, embedder, { scope, tier, query, topK, scoreMin: undefined }, reranker))
      .results;
  };
  const scoreOf = async (tier: Tier, ownerId: string, query: string, content: string): Promise<number> => {
    const found = (await ask(tier, ownerId, query)).find(({ payload }) => payload.content === content);
    return found?.score ?? 0;
  };

  it.each(TIERS)(
    "a score changes by less than 0.1 from three documents to ten thousand, in %s",
    async (tier) => {
      for (const [at, query] of QUESTIONS.entries()) {
        const content = ANSWERS[at] ?? "";
        const few = await scoreOf(tier, "three", query, content);
        const many = await scoreOf(tier, "ten thousand", query, content);
        expect(few).toBeGreaterThan(0.5);
        expect(Math.abs(few - many)).toBeLessThan(0.1);
      }
    },
  );

  it("scores by a reranking model are equal among three documents and ten thousand", async () => {
    const judge: Reranker["judge"] = async (_query, documents) =>
      // Prefers texts with little evidence of their own.
      documents.map((text) => (ANSWERS.includes(text) ? 0.8 : 0.9));
    for (const [at, query] of QUESTIONS.entries()) {
      const scores = [];
      for (const ownerId of ["three", "ten thousand"]) {
        const found = await ask("high_accuracy", ownerId, query, { reranker: { judge } });
        scores.push(found.find(({ payload }) => payload.content === ANSWERS[at])?.score);
      }
      expect(scores[0]).toBeGreaterThan(0.5);
      expect(scores[1]).toBe(scores[0]);
    }
  });

  it("the median difference of scores between the tiers is at most 0.15", async () => {
    const scores = await Promise.all(
      QUESTIONS.map(async (query, at) =>
        Promise.all(TIERS.map((tier) => scoreOf(tier, "ten thousand", query, ANSWERS[at] ?? ""))),
      ),
    );
    const spreads = scores.map((each) => Math.max(...each) - Math.min(...each)).toSorted((a, b) => a - b);
    expect(spreads[1]).toBeLessThanOrEqual(0.15);
  });

  it.each(TIERS)("scores are at most 0.3 for a query of function words, in %s", async (tier) => {
    for (const owner of ["three", "ten thousand"]) {
      for (const query of FUNCTION_WORDS) {
        for (const { score } of await ask(tier, owner, query)) expect(score).toBeLessThanOrEqual(0.3);
      }
    }
  });

  it("fastest finds nothing by function words alone, and nothing without evidence", async () => {
    for (const query of [...FUNCTION_WORDS, ...FOREIGN, "🙂 ?!"])
      expect(await ask("fastest", "ten thousand", query)).toEqual([]);
  });

  it.each(TIERS)("scores stay below 0.5 for questions about another subject, in %s", async (tier) => {
    for (const query of FOREIGN) {
      for (const { score } of await ask(tier, "ten thousand", query)) expect(score).toBeLessThan(0.5);
    }
  });
});

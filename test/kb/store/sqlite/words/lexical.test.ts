import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { analyze } from "../../../../../src/kb/lexical/analyzer.ts";
import { idf, K1, queryFactor, saturation } from "../../../../../src/kb/lexical/bm25.ts";
import { openSqliteStore } from "../../../../../src/kb/store/sqlite/open.ts";
import type { Store } from "../../../../../src/kb/store/store.ts";
import type { Account } from "../../../../../src/kb/store/accounts.ts";
import type { Scope } from "../../../../../src/kb/store/search-index.ts";
import { DEFAULT_SETTINGS } from "../../../../../src/wire/primitives.ts";
import { byWords, wordsOnly } from "../../store-fixture.ts";

const CHUNKS = 3000;
const NOW = "2026-01-01T00:00:00.000Z";

/** Computes the BM25 scores of all texts, as a reference. */
function exhaustive(texts: readonly string[], query: string): number[] {
  const analysed = texts.map((text) => analyze(`Title\n\n${text}`));
  const mean = analysed.reduce((sum, { words }) => sum + words, 0) / texts.length;
  const asked = analyze(query);
  const weights = asked.terms.map((term, at) => {
    const holding = analysed.filter(({ terms }) => terms.includes(term)).length;
    return queryFactor(asked.counts[at] ?? 0) * idf(holding, texts.length);
  });
  return analysed.map(({ terms, counts, words }) =>
    asked.terms.reduce((sum, term, at) => {
      const count = counts[terms.indexOf(term)] ?? 0;
      return sum + (weights[at] ?? 0) * saturation(count, words, mean);
    }, 0),
  );
}

/** Deterministic texts whose word frequencies decline as in prose. */
function prose(count: number): string[] {
  let state = 7;
  const random = (): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return state / 0x7fffffff;
  };
  return Array.from({ length: count }, () =>
    Array.from({ length: 20 + Math.floor(random() * 60) }, () => `q${Math.floor(1500 ** random())}x`).join(
      " ",
    ),
  );
}

describe("search by words in a large scope", () => {
  const texts = prose(CHUNKS);
  let store: Store;
  let account: Account;
  let scope: Scope;
  let made = 0;

  const create = (content: string, ownerId = "ann") =>
    store.records.createResource(
      {
        accountId: account.id,
        id: (++made).toString(16).padStart(24, "0"),
        tier: "fastest",
        ownerId,
        origin: "content",
        title: "Title",
        description: "",
        url: null,
        content,
        settings: DEFAULT_SETTINGS,
        createdAt: NOW,
      },
      wordsOnly(content),
    );
  const top = async (query: string, limit = 10): Promise<{ text: string; bm25: number }[]> => {
    const { hits } = await byWords(store, { scope, query, limit });
    const chunks = await store.index.foundChunks(
      scope,
      hits.map(({ ref }) => ref),
    );
    return chunks.map(({ text }, at) => ({ text, bm25: hits[at]?.bm25 ?? 0 }));
  };

  beforeAll(async () => {
    store = await openSqliteStore();
    account = await store.records.ensureAccount("local");
    const collection = (await store.records.collections(account.id))[0];
    scope = { accountId: account.id, collectionId: collection?.id ?? "", ownerId: "ann" };
    for (let at = 0; at < CHUNKS; at += 100) await create(texts.slice(at, at + 100).join("\n\n"));
  });
  afterAll(() => store.close());

  it.each([
    ["rare words", "q1400x q1321x q900x"],
    ["mixed words", "q1x q30x q700x q1200x"],
    ["common words only", "q1x q9x q12x q15x q20x q25x q30x"],
    ["a word twice", "q40x q40x q8x"],
  ])("finds what scoring every chunk finds: %s", async (_name, query) => {
    const scores = exhaustive(texts, query);
    const best = scores.toSorted((a, b) => b - a).slice(0, 10);
    const found = await top(query);
    expect(found).toHaveLength(best.length);
    for (const { text, bm25 } of found) expect(bm25).toBeCloseTo(scores[texts.indexOf(text)] ?? 0, 6);
    const tenth = best.at(-1) ?? 0;
    expect(found.filter(({ bm25 }) => bm25 >= tenth - 1e-6).length).toBeGreaterThanOrEqual(9);
    expect(found[0]?.bm25).toBeCloseTo(best[0] ?? 0, 6);
  });

  it("finds good chunks, if not the best, of a word that is in every chunk", async () => {
    const best = exhaustive(texts, "q1x").toSorted((a, b) => b - a);
    const found = await top("q1x");
    expect(found).toHaveLength(10);
    for (const { bm25 } of found) expect(bm25).toBeGreaterThan(0.8 * (best[0] ?? 0));
  });

  it("updates posting lists in memory after new, retitled, replaced and deleted chunks", async () => {
    const query = "q60x q61x";
    await top(query);
    const added = await create(`${"q60x q61x ".repeat(30)}added`);
    expect((await top(query))[0]?.text).toMatch(/added$/);
    const at = { accountId: account.id, id: added.id };

    await store.records.updateResource({ ...at, title: "q62x", nowIso: NOW }, undefined);
    await top("q62x q63x");
    await store.records.updateResource({ ...at, title: "q63x", nowIso: NOW }, undefined);
    const of = async (word: string): Promise<boolean> => {
      const part: Scope = { accountId: account.id, resourceId: added.id };
      return (await byWords(store, { scope: part, query: word, limit: 5 })).hits.length > 0;
    };
    expect([await of("q63x"), await of("q62x")]).toEqual([true, false]);

    const content = `${"q60x q61x ".repeat(40)}replaced`;
    await store.records.updateResource({ ...at, content, nowIso: NOW }, wordsOnly(content));
    expect((await top(query))[0]?.text).toMatch(/replaced$/);

    await store.records.deleteResource({ ...at, nowIso: NOW });
    expect((await top(query)).some(({ text }) => /added|replaced/.test(text))).toBe(false);
  });

  it("adds every new chunk to the lists in memory, however many were added since their last use", async () => {
    const within = { ...scope, ownerId: "carol" };
    const counts = new Map<string, number>();
    const words = Array.from({ length: 12 }, (_, at) => `w${at}w`);
    let state = 3;
    const random = (below: number): number => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
      return Math.floor((state / 0x7fffffff) * below);
    };
    const held = async (word: string): Promise<number> =>
      (await byWords(store, { scope: within, query: word, limit: 1000 })).hits.length;
    for (let round = 0; round < 120; round++) {
      const chunks = Array.from({ length: 1 + random(random(5) === 0 ? 70 : 6) }, () => {
        const word = words[random(words.length)] ?? "";
        counts.set(word, (counts.get(word) ?? 0) + 1);
        return `${word} of round ${round}`;
      });
      await create(chunks.join("\n\n"), "carol");
      const word = words[random(words.length)] ?? "";
      expect([word, await held(word)]).toEqual([word, Math.min(1000, counts.get(word) ?? 0)]);
    }
    const all = [...counts.values()].reduce((sum, count) => sum + count, 0);
    for (const word of words) {
      const count = counts.get(word) ?? 0;
      const { hits, ceiling } = await byWords(store, { scope: within, query: word, limit: 1000 });
      expect([word, hits.length]).toEqual([word, count]);
      expect(ceiling).toBeCloseTo(idf(count, all) * (K1 + 1), 10);
    }
  });

  it("adds new chunks of very many words to the lists too", async () => {
    const within = { ...scope, ownerId: "dave" };
    const held = async (word: string): Promise<number> =>
      (await byWords(store, { scope: within, query: word, limit: 100 })).hits.length;
    await create("bulk goods", "dave");
    expect(await held("bulk")).toBe(1);
    const long = Array.from({ length: 6 }, (_, at) => `bulk part${at} ${"filler ".repeat(12_000)}`);
    await create(long.join("\n\n"), "dave");
    expect(await held("bulk")).toBe(7);
    expect(await held("part5")).toBe(1);
    await create("bulk again, part5", "dave");
    expect([await held("bulk"), await held("part5"), await held("bulk")]).toEqual([8, 2, 8]);
    const { ceiling } = await byWords(store, { scope: within, query: "part5", limit: 100 });
    expect(ceiling).toBeCloseTo(idf(2, 8) * (K1 + 1), 10);
  });

  it("updates the counts of words after many chunks were removed", async () => {
    const gone = await create(
      texts
        .slice(0, 500)
        .map((text) => `${text} q2x leaving`)
        .join("\n\n"),
    );
    expect(await top("leaving")).toHaveLength(10);
    await store.records.deleteResource({ accountId: account.id, id: gone.id, nowIso: NOW });
    expect(await byWords(store, { scope, query: "leaving", limit: 5 })).toEqual({ hits: [], ceiling: 0 });
  });

  it("finds words of every chunk while lists still name a few deleted chunks", async () => {
    const within = { ...scope, ownerId: "bob" };
    const pages = [...texts, ...texts].map((text) => `${text} report`);
    const ids: string[] = [];
    for (let at = 0; at < pages.length; at += 60) {
      ids.push((await create(pages.slice(at, at + 60).join("\n\n"), "bob")).id);
    }
    const ask = async (query: string) => byWords(store, { scope: within, query, limit: 5 });
    const before = await ask("report q700x");
    expect((await ask("report")).hits).toHaveLength(5);
    await store.records.deleteResource({ accountId: account.id, id: ids[0] ?? "", nowIso: NOW });
    expect((await ask("report")).hits).toHaveLength(5);
    const after = await ask("report q700x");
    expect(after.hits).toHaveLength(5);
    expect(after.ceiling).toBeCloseTo(before.ceiling, 1);
  });

  it("finds the newest version of a document while lists still name older ones", async () => {
    const id = (await create(handbook("first"), "bob")).id;
    const within = { ...scope, ownerId: "bob" };
    const ask = async (query: string) => byWords(store, { scope: within, query, limit: 5 });
    for (const version of ["second", "third"]) {
      expect((await ask("kilimanjaro")).hits).toHaveLength(5);
      const content = handbook(version);
      await store.records.updateResource(
        { accountId: account.id, id, content, nowIso: NOW },
        wordsOnly(content),
      );
    }
    const { hits } = await ask("kilimanjaro");
    const refs = hits.map(({ ref }) => ref);
    const found = (await store.index.foundChunks(within, refs)).map(({ text }) => text);
    expect(found).toHaveLength(5);
    for (const text of found) expect(text).toMatch(/third/);
  });
});

/** A hundredth as many chunks as before; each contains the word mountain. */
function handbook(version: string): string {
  return Array.from({ length: 60 }, (_, at) => `Kilimanjaro, ${version}, page ${at}`).join("\n\n");
}

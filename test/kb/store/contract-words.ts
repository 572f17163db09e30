import { describe, expect, it } from "vitest";
import { queryWords } from "../../../src/kb/lexical/word-match.ts";
import type { Scope } from "../../../src/kb/store/search-index.ts";
import type { StoreFixture } from "./store-fixture.ts";
import { byWords, LATER, wordsOnly } from "./store-fixture.ts";

/** Search by words. */
export function wordsContract(fixture: StoreFixture): void {
  const { create, scope, find, texts } = fixture;

  describe("search by words", () => {
    it("finds word forms in any case and with accents folded", async () => {
      await create("The Ministers were RUNNING in Zürich.");
      const queries = ["minister", "run", "zurich", "ZÜRICH", "ran running"];
      expect(await Promise.all(queries.map(async (query) => (await texts(query)).length))).toEqual([
        1, 1, 1, 1, 1,
      ]);
      expect(await texts("walking")).toEqual([]);
    });

    it("finds parts of texts without spaces", async () => {
      await create("知识库同步工具很好用");
      await create("データベースの検索");
      expect(await texts("同步")).toEqual(["知识库同步工具很好用"]);
      expect(await texts("工")).toEqual(["知识库同步工具很好用"]);
      expect(await texts("検索")).toEqual(["データベースの検索"]);
    });

    it("finds words in mixed case and with underscores by their parts and as a whole", async () => {
      await create("call getUserName here");
      await create("call set_user_age here");
      expect(await texts("user")).toHaveLength(2);
      expect(await texts("name")).toEqual(["call getUserName here"]);
      expect(await texts("getusername")).toEqual(["call getUserName here"]);
      expect(await texts("age")).toEqual(["call set_user_age here"]);
    });

    it("finds words with umlauts and without, in either spelling", async () => {
      await create("Möhren und Klöße");
      await create("Moehren roh");
      expect(await texts("Moehren")).toHaveLength(2);
      expect(await texts("MÖHREN")).toHaveLength(2);
      expect(await texts("Mohren")).toEqual(["Möhren und Klöße"]);
      expect(await texts("Kloesse")).toEqual(["Möhren und Klöße"]);
    });

    it("finds words of a text in another language by all their forms, beside English texts", async () => {
      const german =
        "Die Kündigung der Wohnung ist mit einer Frist von drei Monaten möglich, und sie wird von der Verwaltung bestätigt.";
      const russian = "Ключи от квартир хранятся в шкафу, и план висит в коридоре у входной двери.";
      await create("The notice period of a flat is three months, and the office confirms it to the tenant.");
      const before = await find("confirmed notices");
      await create(german);
      await create(russian);
      expect(await texts("kündigen")).toEqual([german]);
      expect(await texts("Wohnungen")).toEqual([german]);
      expect(await texts("ключ от квартиры")).toEqual([russian]);
      // With a typing error in its stem.
      expect(await texts("Wohnng")).toEqual([german]);
      expect((await find("confirmed notices")).map(({ ref }) => ref)).toEqual(before.map(({ ref }) => ref));
    });

    it("finds a compound by both its parts, only if no chunk of the owner has the compound itself", async () => {
      const parts =
        "Die Kündigung der Wohnung ist mit einer Frist von drei Monaten möglich, und sie wird von der Verwaltung bestätigt.";
      await create("The notice period of a flat is three months.");
      await create(parts);
      expect(await texts("Kündigungsfrist")).toEqual([parts]);
      expect(await texts("wohnungsverwaltung")).toEqual([parts]);
      expect(await texts("Wohnungsraupe")).toEqual([]);
      expect(await texts("Wohnung")).toEqual([parts]);
      const whole = "Die Kündigungsfrist ist kurz, und sie wird nicht von der Post bestätigt.";
      await create(whole);
      expect(await texts("Kündigungsfristen")).toEqual([whole]);
    });

    it("finds a mistyped word by a word with one difference, only if no chunk of the owner has the word itself", async () => {
      await create("please receive the invoice");
      expect(await texts("recieve")).toEqual(["please receive the invoice"]);
      expect(await texts("invoces unheard")).toEqual(["please receive the invoice"]);
      expect(await texts("inviocse")).toEqual([]);
      await create("recieve is misspelled", { ownerId: "other" });
      expect(await texts("recieve")).toEqual(["please receive the invoice"]);
      await create("recieve is misspelled");
      expect(await texts("recieve")).toEqual(["recieve is misspelled"]);
    });

    it("gives a mistyped word less weight than the word itself", async () => {
      await create("please receive the invoice");
      const matched = async (query: string) =>
        (await byWords(fixture.store, { scope: await scope(), query, limit: 1 })).hits[0]?.match.matched ?? 0;
      expect(await matched("recieve")).toBeGreaterThan(0);
      expect(await matched("recieve")).toBeLessThan(await matched("receive"));
    });

    it("returns a chunk with its resource's title and its offset in the text", async () => {
      await create("First words here.\n\nThe second paragraph.", { title: "Two" });
      expect(await find("second")).toMatchObject([{ title: "Two", start: 19, end: 40 }]);
    });

    it("treats a query as plain words", async () => {
      await create("plain words only");
      for (const query of [
        '"',
        'words"',
        "NEAR(plain words)",
        "plain*",
        "^plain",
        "-plain",
        "terms:plain",
        "a AND",
        "(",
        "'; --",
      ]) {
        const { hits } = await byWords(fixture.store, { scope: await scope(), query, limit: 5 });
        expect(hits.length).toBe(/plain|words/.test(query) ? 1 : 0);
      }
      expect(await texts('NOT "plain" OR (')).toEqual(["plain words only"]);
      expect(await texts("pla*")).toEqual([]);
    });

    it("returns no hits for a query without words", async () => {
      expect(await byWords(fixture.store, { scope: await scope(), query: "x", limit: 5 })).toEqual({
        hits: [],
        ceiling: 0,
      });
      await create("some words");
      expect(await byWords(fixture.store, { scope: await scope(), query: "?!", limit: 5 })).toEqual({
        hits: [],
        ceiling: 0,
      });
      const unknown = await byWords(fixture.store, { scope: await scope(), query: "xylophone", limit: 5 });
      expect(unknown).toEqual({ hits: [], ceiling: 0 });
    });

    it("ranks chunks by BM25, below the ceiling, with the word match of each", async () => {
      await create("common rare\n\ncommon only here\n\ncommon again and again common\n\nnothing");
      const { hits, ceiling } = await byWords(fixture.store, {
        scope: await scope(),
        query: "common rare",
        limit: 10,
      });
      expect(hits).toHaveLength(3);
      expect(hits.map(({ bm25 }) => bm25)).toEqual(hits.map(({ bm25 }) => bm25).toSorted((a, b) => b - a));
      expect(hits[0]?.match.matched).toBeCloseTo(queryWords("common rare").total);
      for (const hit of hits) {
        expect(hit.bm25).toBeGreaterThan(0);
        expect(hit.bm25).toBeLessThan(ceiling);
        expect(hit.match.strength).toBeLessThan(hit.match.matched);
      }
      expect(
        (await byWords(fixture.store, { scope: await scope(), query: "common rare", limit: 1 })).hits,
      ).toEqual(hits.slice(0, 1));
    });

    it("gives a chunk and a query the same match, whatever else the owner has", async () => {
      const query = "how the tides follow the moon";
      const matchOf = async () => {
        const { hits } = await byWords(fixture.store, { scope: await scope(), query, limit: 100 });
        const found = await fixture.store.index.foundChunks(
          await scope(),
          hits.map(({ ref }) => ref),
        );
        const at = found.findIndex(({ text }) => text.startsWith("The moon"));
        return hits[at]?.match;
      };
      await create("The moon pulls the sea, and tides follow.");
      const alone = await matchOf();
      expect(alone?.matched).toBeGreaterThan(0);
      const others = Array.from({ length: 60 }, (_, at) => `moon and tides ${"again ".repeat(at)}`);
      await create(others.join("\n\n"));
      expect(await matchOf()).toEqual(alone);
    });

    it("finds a chunk by its headings and the title of its resource", async () => {
      const content = "Body text.";
      const spans = [{ start: 0, end: content.length, headings: ["Install", "On Debian"] }];
      await create(content, { title: "Handbook" }, { spans });
      const queries = ["debian", "install", "handbook"];
      expect(await Promise.all(queries.map((query) => texts(query)))).toEqual(queries.map(() => [content]));
    });

    it("finds a chunk by the words of its resource's path, name and tags, until they change", async () => {
      const metadata = {
        path: "coast/harbour_north/note.md",
        name: "note.md",
        tags: ["ebb-tide", "sea"],
        author: "Ann",
      };
      const { id } = await create("Body text.\n\nMore text.", { metadata });
      const at = { accountId: fixture.account.id, id };
      const ids = (await fixture.chunks(at)).map((chunk) => chunk.id);
      const counts = (queries: readonly string[]) =>
        Promise.all(queries.map(async (query) => (await texts(query)).length));
      expect(await counts(["coast", "harbour", "notes", "ebb", "sea", "body", "Ann"])).toEqual([
        2, 2, 2, 2, 2, 1, 0,
      ]);

      const changed = { ...metadata, path: "desert/note.md", tags: "dune" };
      await fixture.store.records.updateResource({ ...at, metadata: changed, nowIso: LATER }, undefined);
      expect(await counts(["coast", "ebb", "sea", "desert", "dune", "note"])).toEqual([0, 0, 0, 2, 2, 2]);
      await fixture.store.records.updateResource({ ...at, title: "Oasis", nowIso: LATER }, undefined);
      expect(await counts(["Untitled", "oasis", "desert"])).toEqual([0, 2, 2]);
      expect((await fixture.chunks(at)).map((chunk) => chunk.id)).toEqual(ids);

      const content = "Body text.";
      await fixture.store.records.updateResource({ ...at, content, nowIso: LATER }, wordsOnly(content));
      expect(await counts(["oasis", "desert", "dune"])).toEqual([1, 1, 1]);
      await fixture.store.records.updateResource({ ...at, metadata: {}, nowIso: LATER }, undefined);
      expect(await counts(["oasis", "desert", "dune"])).toEqual([1, 0, 0]);
    });

    it("scores documents alike without metadata and with metadata that holds no words of a name", async () => {
      await create("The moon pulls the sea.", { title: "Tides" });
      await create("The moon pulls the sea.", {
        title: "Tides",
        metadata: { author: "Ann", size: 23, tags: [] },
      });
      // The words of the path are in the title.
      await create("The moon pulls the sea.", { title: "Tides", metadata: { path: "tides", name: "Tides" } });
      const { hits } = await byWords(fixture.store, { scope: await scope(), query: "moon tides", limit: 5 });
      expect(hits).toHaveLength(3);
      expect(new Set(hits.map(({ bm25, match }) => JSON.stringify([bm25, match]))).size).toBe(1);
    });

    it("searches one resource with the weights and scores of its collection", async () => {
      const one = await create("needle hay\n\nhay hay");
      await create("needle again\n\nmore hay");
      const whole = await byWords(fixture.store, { scope: await scope(), query: "needle hay", limit: 10 });
      const part: Scope = { accountId: fixture.account.id, resourceId: one.id };
      const inside = await byWords(fixture.store, { scope: part, query: "needle hay", limit: 10 });
      const refs = new Set(
        (await fixture.chunks({ accountId: fixture.account.id, id: one.id })).map(({ ref }) => ref),
      );
      expect(inside).toEqual({
        ceiling: whole.ceiling,
        hits: whole.hits.filter(({ ref }) => refs.has(ref)),
      });
      expect(inside.hits).toHaveLength(2);
    });

    it("returns the full number of hits for a small owner in a large collection", async () => {
      const big = Array.from({ length: 400 }, (_, index) => `shared words number ${index}`).join("\n\n");
      await create(big, { ownerId: "big" });
      await create("shared one\n\nshared two\n\nshared three", { ownerId: "small" });
      expect(await find("shared words", await scope("small"), 3)).toHaveLength(3);
      expect(
        (await find("shared", await scope("small"), 10)).every(({ ownerId }) => ownerId === "small"),
      ).toBe(true);
      expect(await find("shared", await scope("nobody"), 10)).toEqual([]);
    });
  });
}

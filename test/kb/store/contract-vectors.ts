import { describe, expect, it } from "vitest";
import { byVector, byWords, dot, LATER, type StoreFixture, unit, wordsOnly } from "./store-fixture.ts";
import { updateEmbedded, type Embedded, lackingChunks } from "./embedded.ts";

/** Search by vector. */
export function vectorsContract(fixture: StoreFixture): void {
  const { create, scope, alone } = fixture;

  describe("search by vector", () => {
    const withVectors = (content: string, vectors: Float32Array[], fingerprint = "m1"): Embedded => ({
      ...wordsOnly(content),
      vectors,
      fingerprint,
    });

    it("ranks chunks by cosine", async () => {
      const vectors = [unit([1, 0, 0]), unit([1, 1, 0]), unit([0, 0, 1])];
      await create("a\n\nb\n\nc", { tier: "moderate" }, withVectors("a\n\nb\n\nc", vectors));
      const within = await scope("ann", "moderate");
      const vector = unit([1, 0.1, 0]);
      const hits = await byVector(fixture.store, { scope: within, vector, fingerprint: "m1", limit: 2 });
      const refs = hits.map(({ ref }) => ref);
      expect((await fixture.store.index.foundChunks(within, refs)).map(({ text }) => text)).toEqual([
        "a",
        "b",
      ]);
      expect(hits[0]?.cosine).toBeCloseTo(dot(vector, vectors[0] ?? vector), 2);
    });

    it("returns hits by words, hits by vector and the chunks of both in one read", async () => {
      await create("a\n\nb", { tier: "moderate" }, withVectors("a\n\nb", [unit([1, 0]), unit([1, 0.1])]));
      const within = await scope("ann", "moderate");
      const lexical = { query: "b", limit: 5 };
      const nearest = { vector: unit([1, 0]), fingerprint: "m1", limit: 5 };
      const ask = { scope: within, lexical, nearest, depth: 5, withChunks: true };
      const both = await fixture.store.index.evidence(ask);
      expect(both.lexical).toEqual(await byWords(fixture.store, { scope: within, ...lexical }));
      expect(both.nearest).toEqual(await byVector(fixture.store, { scope: within, ...nearest }));
      expect(both.chunks.map(({ text }) => text).toSorted()).toEqual(["a", "b"]);
      const words = await fixture.store.index.evidence({ ...ask, nearest: undefined });
      expect(words).toMatchObject({ nearest: undefined, others: [] });
      expect(words.chunks.map(({ text }) => text)).toEqual(["b"]);
      expect((await fixture.store.index.evidence({ ...ask, withChunks: false })).chunks).toEqual([]);
      expect(
        await fixture.store.index.evidence({ ...ask, scope: await scope("nobody", "moderate") }),
      ).toEqual({
        lexical: { hits: [], ceiling: 0 },
        scopeChunks: 0,
        nearest: [],
        others: [],
        nearestMatches: [],
        chunks: [],
      });
    });

    it("returns the cosines of hits by words that are not among the nearest, of a document's first and last chunk too", async () => {
      const text = "moon\n\nsun\n\nmoon";
      const vectors = [unit([1, 2]), unit([1, 0]), unit([0, 1])];
      const { id } = await create(text, { tier: "moderate" }, withVectors(text, vectors));
      const rows = (await fixture.chunks({ accountId: fixture.account.id, id })).map(({ ref }) => ref);
      const { nearest, others } = await fixture.store.index.evidence({
        scope: { accountId: fixture.account.id, resourceId: id },
        lexical: { query: "moon", limit: 5 },
        nearest: { vector: unit([1, 0]), fingerprint: "m1", limit: 1 },
        depth: 5,
        withChunks: false,
      });
      expect(nearest?.map(({ ref }) => ref)).toEqual([rows[1]]);
      const cosineOf = new Map(others.map(({ ref, cosine }) => [ref, cosine]));
      expect([...cosineOf.keys()].toSorted((a, b) => a - b)).toEqual([rows[0], rows[2]]);
      expect(cosineOf.get(rows[0] ?? 0)).toBeCloseTo(1 / Math.sqrt(5), 2);
      expect(cosineOf.get(rows[2] ?? 0)).toBeCloseTo(0, 2);
    });

    it("returns the word matches of the nearest that are not hits by words", async () => {
      const text = "moon\n\nmoon moon moon";
      await create(text, { tier: "moderate" }, withVectors(text, [unit([1, 0]), unit([0, 1])]));
      const within = await scope("ann", "moderate");
      const nearest = { vector: unit([1, 0]), fingerprint: "m1", limit: 1 };
      const ask = (limit: number) =>
        fixture.store.index.evidence({
          scope: within,
          lexical: { query: "moon", limit },
          nearest,
          depth: 5,
          withChunks: false,
        });
      const [all, one] = [await ask(5), await ask(1)];
      expect(all.nearestMatches).toEqual([]);
      const ref = one.nearest?.[0]?.ref;
      expect(one.nearestMatches).toEqual([
        { ref, match: all.lexical.hits.find((hit) => hit.ref === ref)?.match },
      ]);
    });

    it("returns the cosines of the first hits by words that are not among the nearest", async () => {
      const text = "moon moon moon\n\nmoon moon\n\nmoon\n\nsea";
      const vectors = [unit([1, 0]), unit([1, 1]), unit([0, 1]), unit([1, 0.1])];
      await create(text, { tier: "moderate" }, withVectors(text, vectors));
      const bare = "moon moon moon moon";
      await create(bare, { tier: "moderate" }, wordsOnly(bare));
      const within = await scope("ann", "moderate");
      const lexical = { query: "moon", limit: 5 };
      const ask = async (depth: number, fingerprint = "m1") => {
        const nearest = { vector: unit([1, 0]), fingerprint, limit: 1 };
        const ranked = { scope: within, lexical, nearest, depth, withChunks: true };
        const found = await fixture.store.index.evidence(ranked);
        const textOf = new Map(found.chunks.map((chunk) => [chunk.ref, chunk.text]));
        return {
          nearest: found.nearest?.map(({ ref }) => textOf.get(ref)),
          others: found.others.map(({ ref, cosine }) => [textOf.get(ref), Number(cosine.toFixed(1))]),
        };
      };
      expect(await ask(5)).toEqual({
        nearest: ["moon moon moon"],
        others: [
          ["moon moon", 0.7],
          ["moon", 0],
        ],
      });
      // The first hit has no vector, the second is the nearest.
      expect((await ask(3)).others).toEqual([["moon moon", 0.7]]);
      expect((await ask(2)).others).toEqual([]);
      expect(await ask(5, "m2")).toEqual({ nearest: [], others: [] });
    });

    it("uses only vectors of the given fingerprint", async () => {
      await create("a", { tier: "moderate" }, withVectors("a", [unit([1, 0])]));
      const query = { scope: await scope("ann", "moderate"), vector: unit([1, 0]), limit: 5 };
      expect(await byVector(fixture.store, { ...query, fingerprint: "m2" })).toEqual([]);
      expect(await byVector(fixture.store, { ...query, fingerprint: "m1" })).toHaveLength(1);
    });

    it("lists chunks that lack a vector, and accepts their vectors later", () =>
      alone(async () => {
        await create("a\n\nb", { tier: "moderate" });
        await create("c", { tier: "fastest" });
        const lacking = await lackingChunks(fixture.store.index, "m1", { tiers: ["moderate"] });
        expect(lacking.map(({ text }) => text)).toEqual(["a", "b"]);
        await fixture.store.index.putVectors("m1", [
          ...lacking.map(({ ref }, at) => ({ ref, vector: unit([1, at]) })),
          { ref: 12345, vector: unit([1, 0]) },
        ]);
        expect(await lackingChunks(fixture.store.index, "m1", { tiers: ["moderate"] })).toEqual([]);
        expect(await lackingChunks(fixture.store.index, "m2", { tiers: ["moderate"] })).toHaveLength(2);
        const query = {
          scope: await scope("ann", "moderate"),
          vector: unit([1, 0]),
          fingerprint: "m1",
          limit: 5,
        };
        expect((await byVector(fixture.store, query)).map(({ ref }) => ref)).toEqual(
          lacking.map(({ ref }) => ref),
        );
      }));

    it("removes the vectors of replaced and deleted chunks", async () => {
      const one = await create("a", { tier: "moderate" }, withVectors("a", [unit([1, 0])]));
      const two = await create("b", { tier: "moderate" }, withVectors("b", [unit([1, 0.1])]));
      const within = await scope("ann", "moderate");
      const near = async (): Promise<string[]> => {
        const hits = await byVector(fixture.store, {
          scope: within,
          vector: unit([1, 0]),
          fingerprint: "m1",
          limit: 5,
        });
        return (
          await fixture.store.index.foundChunks(
            within,
            hits.map(({ ref }) => ref),
          )
        ).map(({ text }) => text);
      };
      expect(await near()).toEqual(["a", "b"]);
      const change = { accountId: fixture.account.id, id: one.id, content: "n", nowIso: LATER };
      await updateEmbedded(fixture.store, change, withVectors("n", [unit([0, 1])]));
      expect(await near()).toEqual(["b", "n"]);
      await fixture.store.records.deleteResource({
        accountId: fixture.account.id,
        id: two.id,
        nowIso: LATER,
      });
      expect(await near()).toEqual(["n"]);
    });
  });
}

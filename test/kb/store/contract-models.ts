import { describe, expect, it } from "vitest";
import type { Chunking } from "../../../src/kb/store/chunks.ts";
import { byVector, LATER, type StoreFixture, unit, wordsOnly } from "./store-fixture.ts";

const TIERS = ["moderate"] as const;

/** The serving model, and the vectors that survive a change. */
export function modelsContract(fixture: StoreFixture): void {
  const { create, scope, alone } = fixture;
  const embedded = (content: string, fingerprint: string): Chunking => ({
    ...wordsOnly(content),
    vectors: wordsOnly(content).spans.map(({ start }) => unit([1, start])),
    fingerprint,
  });
  const moderate = { tier: "moderate" } as const;
  const rowsWithout = async (fingerprint: string): Promise<string[]> =>
    (await fixture.store.index.chunksWithoutVector(fingerprint, TIERS, 10)).map(({ text }) => text);

  describe("the serving model", () => {
    it("serves the first model that gave vectors, until another one has all of them", () =>
      alone(async () => {
        const one = await create("a\n\nb", moderate, embedded("a\n\nb", "m1"));
        const within = await scope("ann", "moderate");
        const byTier = { accountId: fixture.account.id, tier: "moderate", ownerId: "ann" } as const;
        const byResource = { accountId: fixture.account.id, resourceId: one.id };
        for (const served of [within, byTier, byResource])
          expect(await fixture.store.index.servingFingerprint(served)).toBe("m1");
        expect(await fixture.store.index.servingFingerprint({ ...within, ownerId: "bob" })).toBeUndefined();
        expect(
          await fixture.store.index.servingFingerprint({ ...byResource, accountId: "f".repeat(24) }),
        ).toBeUndefined();

        const lacking = await fixture.store.index.chunksWithoutVector("m2", TIERS, 10);
        const [first, second] = lacking.map(({ ref }) => ref);
        await fixture.store.index.putVectors("m2", [{ ref: first ?? 0, vector: unit([1, 0]) }]);
        expect(await fixture.store.index.serveComplete("m2", TIERS, [])).toBe(0);
        expect(await fixture.store.index.servingFingerprint(within)).toBe("m1");
        expect(await fixture.store.index.dropRetired("m2", 100)).toBe(0);
        // A chunk that no model can embed does not prevent the switch.
        expect(await fixture.store.index.serveComplete("m2", TIERS, [second ?? 0])).toBe(1);
        expect(await fixture.store.index.servingFingerprints()).toEqual(["m2"]);
        expect(await fixture.store.index.dropRetired("m2", 1)).toBe(1);
        expect(await fixture.store.index.dropRetired("m2", 100)).toBe(1);
        expect(await rowsWithout("m1")).toEqual(["a", "b"]);
        expect(await rowsWithout("m2")).toEqual(["b"]);
      }));

    it("lists chunks without a vector across several steps, in order, and continues after a ref", () =>
      alone(async () => {
        const text = Array.from({ length: 1500 }, (_, at) => `chunk ${at}`).join("\n\n");
        await create(text, moderate, embedded(text, "m1"));
        await create("last", { ...moderate, ownerId: "bob" }, embedded("last", "m1"));
        const { store } = fixture;
        const all = await store.index.chunksWithoutVector("m2", TIERS, 2000);
        expect(all.map((chunk) => chunk.text)).toEqual([...text.split("\n\n"), "last"]);
        const some = await store.index.chunksWithoutVector("m2", TIERS, 1200);
        expect(some).toEqual(all.slice(0, 1200));
        expect(await store.index.chunksWithoutVector("m2", TIERS, 2000, some.at(-1)?.ref)).toEqual(
          all.slice(1200),
        );
        const vector = unit([1, 0]);
        const given = all.filter((_, at) => at !== 1400).map(({ ref }) => ({ ref, vector }));
        await store.index.putVectors("m2", given);
        expect((await store.index.chunksWithoutVector("m2", TIERS, 9)).map((chunk) => chunk.text)).toEqual([
          "chunk 1400",
        ]);
        expect(await store.index.serveComplete("m2", TIERS, [])).toBe(1);
        expect(await store.index.serveComplete("m2", TIERS, [all[1400]?.ref ?? 0])).toBe(1);
      }));

    it("switches the serving model of each owner separately", () =>
      alone(async () => {
        await create("a", moderate, embedded("a", "m1"));
        await create("b", { ...moderate, ownerId: "bob" }, embedded("b", "m1"));
        const [ann] = await fixture.store.index.chunksWithoutVector("m2", TIERS, 10);
        await fixture.store.index.putVectors("m2", [{ ref: ann?.ref ?? 0, vector: unit([1, 0]) }]);
        expect(await fixture.store.index.serveComplete("m2", TIERS, [])).toBe(1);
        expect(await fixture.store.index.servingFingerprint(await scope("ann", "moderate"))).toBe("m2");
        expect(await fixture.store.index.servingFingerprint(await scope("bob", "moderate"))).toBe("m1");
      }));
  });

  describe("vectors of chunks that do not change", () => {
    it("keeps vectors of unchanged chunks in an update, for every model", () =>
      alone(async () => {
        const { id } = await create("a\n\nb", moderate, embedded("a\n\nb", "m1"));
        const at = { accountId: fixture.account.id, id };
        expect(await fixture.store.index.embeddedChunks(at, "m1")).toEqual([
          { headings: [], text: "a" },
          { headings: [], text: "b" },
        ]);
        const spans = wordsOnly("new\n\nb").spans;
        await fixture.store.records.updateResource(
          { ...at, content: "new\n\nb", nowIso: LATER },
          { spans, vectors: [unit([0, 1]), undefined], fingerprint: "m1" },
        );
        expect(await rowsWithout("m1")).toEqual([]);
        await fixture.store.records.updateResource(
          { ...at, content: "c\n\nb", nowIso: LATER },
          wordsOnly("c\n\nb"),
        );
        expect(await rowsWithout("m1")).toEqual(["c"]);
        const query = {
          scope: await scope("ann", "moderate"),
          vector: unit([1, 3]),
          fingerprint: "m1",
          limit: 5,
        };
        expect(await byVector(fixture.store, query)).toHaveLength(1);
      }));

    it("marks vectors as stale under a new title until new ones arrive", () =>
      alone(async () => {
        const { id } = await create("a\n\nb", moderate, embedded("a\n\nb", "m1"));
        const at = { accountId: fixture.account.id, id };
        await fixture.store.records.updateResource({ ...at, title: "Two", nowIso: LATER }, undefined);
        const stale = await fixture.store.index.chunksWithoutVector("m1", TIERS, 10);
        expect(stale.map(({ title, text }) => [title, text])).toEqual([
          ["Two", "a"],
          ["Two", "b"],
        ]);
        expect(await fixture.store.index.embeddedChunks(at, "m1")).toEqual([]);
        // Retitled again while these were made: they belong to a title that is gone.
        await fixture.store.records.updateResource({ ...at, title: "Three", nowIso: LATER }, undefined);
        const put = stale.map(({ ref, staleSince }) => ({ ref, staleSince, vector: unit([1, 1]) }));
        await fixture.store.index.putVectors("m1", put);
        const again = await fixture.store.index.chunksWithoutVector("m1", TIERS, 10);
        expect(again.map(({ title }) => title)).toEqual(["Three", "Three"]);
        await fixture.store.index.putVectors(
          "m1",
          again.map(({ ref, staleSince }) => ({ ref, staleSince, vector: unit([1, 1]) })),
        );
        expect(await rowsWithout("m1")).toEqual([]);
      }));
  });

  describe("the first vectors of chunks", () => {
    it("refuses first vectors if the title changed while they were made", () =>
      alone(async () => {
        const { id } = await create("a\n\nb", moderate);
        const at = { accountId: fixture.account.id, id };
        const read = await fixture.store.index.chunksWithoutVector("m1", TIERS, 10);
        await fixture.store.records.updateResource({ ...at, title: "Two", nowIso: LATER }, undefined);
        const vector = unit([1, 1]);
        await fixture.store.index.putVectors(
          "m1",
          read.map(({ ref, staleSince }) => ({ ref, staleSince, vector })),
        );
        expect(await fixture.store.index.embeddedChunks(at, "m1")).toEqual([]);
        const query = { scope: await scope("ann", "moderate"), vector, fingerprint: "m1", limit: 5 };
        expect(await byVector(fixture.store, query)).toEqual([]);
        const again = await fixture.store.index.chunksWithoutVector("m1", TIERS, 10);
        expect(again.map(({ title, text }) => [title, text])).toEqual([
          ["Two", "a"],
          ["Two", "b"],
        ]);
        await fixture.store.index.putVectors(
          "m1",
          again.map(({ ref, staleSince }) => ({ ref, staleSince, vector })),
        );
        expect(await rowsWithout("m1")).toEqual([]);
        expect(await fixture.store.index.embeddedChunks(at, "m1")).toHaveLength(2);
      }));

    it("accepts first vectors if something other than the title changed while they were made", () =>
      alone(async () => {
        const { id } = await create("a", moderate);
        const at = { accountId: fixture.account.id, id };
        const read = await fixture.store.index.chunksWithoutVector("m1", TIERS, 10);
        await fixture.store.records.updateResource({ ...at, description: "other", nowIso: LATER }, undefined);
        await fixture.store.index.putVectors(
          "m1",
          read.map(({ ref, staleSince }) => ({ ref, staleSince, vector: unit([1, 1]) })),
        );
        expect(await rowsWithout("m1")).toEqual([]);
      }));

    it("serves another model only when all its vectors exist, under a new title too", () =>
      alone(async () => {
        await create("a", moderate, embedded("a", "m1"));
        const { id } = await create("b", moderate, embedded("b", "m1"));
        const at = { accountId: fixture.account.id, id };
        await fixture.store.records.updateResource({ ...at, title: "Two", nowIso: LATER }, undefined);
        const [first, second] = await fixture.store.index.chunksWithoutVector("m2", TIERS, 10);
        await fixture.store.index.putVectors("m2", [{ ref: first?.ref ?? 0, vector: unit([1, 0]) }]);
        expect(await fixture.store.index.serveComplete("m2", TIERS, [])).toBe(0);
        const { ref, staleSince } = second ?? { ref: 0 };
        await fixture.store.index.putVectors("m2", [{ ref, staleSince, vector: unit([1, 0]) }]);
        expect(await fixture.store.index.serveComplete("m2", TIERS, [])).toBe(1);
      }));
  });

  it("returns the strategy that split a text", async () => {
    const settings = { strategy: "agentic", chunkSize: 100, chunkOverlap: 0 } as const;
    const one = await create("a", { settings }, { ...wordsOnly("a"), strategyUsed: "semantic" });
    expect(one.strategyUsed).toBe("semantic");
    const at = { accountId: fixture.account.id, id: one.id };
    await fixture.store.records.updateResource({ ...at, title: "Two", nowIso: LATER }, undefined);
    expect(await fixture.store.records.resource(at)).toMatchObject({ strategyUsed: "semantic" });
    await fixture.store.records.updateResource({ ...at, content: "b", nowIso: LATER }, wordsOnly("b"));
    expect(await fixture.store.records.resource(at)).toMatchObject({ strategyUsed: "agentic" });
  });
}

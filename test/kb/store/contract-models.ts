import { describe, expect, it } from "vitest";
import { byVector, LATER, type StoreFixture, unit, wordsOnly } from "./store-fixture.ts";
import { updateEmbedded, type Embedded, lackingChunks } from "./embedded.ts";

const TIERS = ["moderate"] as const;

/** The serving model, and the vectors that survive a change. */
export function modelsContract(fixture: StoreFixture): void {
  const { create, scope, alone } = fixture;
  const embedded = (content: string, fingerprint: string): Embedded => ({
    ...wordsOnly(content),
    vectors: wordsOnly(content).spans.map(({ start }) => unit([1, start])),
    fingerprint,
  });
  const moderate = { tier: "moderate" } as const;
  const rowsWithout = async (fingerprint: string): Promise<string[]> =>
    (await lackingChunks(fixture.store.index, fingerprint, { tiers: TIERS })).map(({ text }) => text);

  describe("the serving model", () => {
    it("serves the first model that gave vectors, until another one has all of them", () =>
      alone(async () => {
        const one = await create("a\n\nb", moderate, embedded("a\n\nb", "m1"));
        const within = await scope("ann", "moderate");
        const byResource = { accountId: fixture.account.id, resourceId: one.id };
        for (const served of [within, byResource])
          expect(await fixture.store.index.servingFingerprint(served)).toBe("m1");
        expect(await fixture.store.index.servingFingerprint({ ...within, ownerId: "bob" })).toBeUndefined();
        expect(
          await fixture.store.index.servingFingerprint({ ...byResource, accountId: "f".repeat(24) }),
        ).toBeUndefined();

        const lacking = await lackingChunks(fixture.store.index, "m2", { tiers: TIERS });
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

    it("switches only when the last of many chunks has a vector or is excepted", () =>
      alone(async () => {
        const text = Array.from({ length: 1500 }, (_, at) => `chunk ${at}`).join("\n\n");
        await create(text, moderate, embedded(text, "m1"));
        await create("last", { ...moderate, ownerId: "bob" }, embedded("last", "m1"));
        const { index } = fixture.store;
        const all = await lackingChunks(index, "m2", { tiers: TIERS });
        expect(all.map((chunk) => chunk.text)).toEqual([...text.split("\n\n"), "last"]);
        const vector = unit([1, 0]);
        await index.putVectors(
          "m2",
          all.filter((_, at) => at !== 1400).map(({ ref }) => ({ ref, vector })),
        );
        expect(await rowsWithout("m2")).toEqual(["chunk 1400"]);
        expect(await index.serveComplete("m2", TIERS, [])).toBe(1);
        expect(await index.serveComplete("m2", TIERS, [all[1400]?.ref ?? 0])).toBe(1);
      }));

    it("switches the serving model of each owner separately", () =>
      alone(async () => {
        await create("a", moderate, embedded("a", "m1"));
        await create("b", { ...moderate, ownerId: "bob" }, embedded("b", "m1"));
        const [ann] = await lackingChunks(fixture.store.index, "m2", { tiers: TIERS });
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
        const spans = wordsOnly("new\n\nb").spans;
        await updateEmbedded(
          fixture.store,
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
        const stale = await lackingChunks(fixture.store.index, "m1", { tiers: TIERS });
        expect(stale.map(({ title, text }) => [title, text])).toEqual([
          ["Two", "a"],
          ["Two", "b"],
        ]);
        // Retitled again while these were made: they belong to a title that is gone.
        await fixture.store.records.updateResource({ ...at, title: "Three", nowIso: LATER }, undefined);
        const put = stale.map(({ ref, staleSince }) => ({ ref, staleSince, vector: unit([1, 1]) }));
        await fixture.store.index.putVectors("m1", put);
        const again = await lackingChunks(fixture.store.index, "m1", { tiers: TIERS });
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
        const read = await lackingChunks(fixture.store.index, "m1", { tiers: TIERS });
        await fixture.store.records.updateResource({ ...at, title: "Two", nowIso: LATER }, undefined);
        const vector = unit([1, 1]);
        await fixture.store.index.putVectors(
          "m1",
          read.map(({ ref, staleSince }) => ({ ref, staleSince, vector })),
        );
        const query = { scope: await scope("ann", "moderate"), vector, fingerprint: "m1", limit: 5 };
        expect(await byVector(fixture.store, query)).toEqual([]);
        const again = await lackingChunks(fixture.store.index, "m1", { tiers: TIERS });
        expect(again.map(({ title, text }) => [title, text])).toEqual([
          ["Two", "a"],
          ["Two", "b"],
        ]);
        await fixture.store.index.putVectors(
          "m1",
          again.map(({ ref, staleSince }) => ({ ref, staleSince, vector })),
        );
        expect(await rowsWithout("m1")).toEqual([]);
        expect(await byVector(fixture.store, query)).toHaveLength(2);
      }));

    it("accepts first vectors if something other than the title changed while they were made", () =>
      alone(async () => {
        const { id } = await create("a", moderate);
        const at = { accountId: fixture.account.id, id };
        const read = await lackingChunks(fixture.store.index, "m1", { tiers: TIERS });
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
        const [first, second] = await lackingChunks(fixture.store.index, "m2", { tiers: TIERS });
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

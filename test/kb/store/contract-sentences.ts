import { describe, expect, it } from "vitest";
import { LATER, unit, wordsOnly, type StoreFixture } from "./store-fixture.ts";
import { updateEmbedded, type Embedded, lackingChunks } from "./embedded.ts";

/** Vectors of sentences. */
export function sentencesContract(fixture: StoreFixture): void {
  const { create, scope, chunks, alone } = fixture;
  const tier = "high_accuracy";
  const EAST = unit([1, 0, 0, 0]);
  const NORTH = unit([0, 1, 0, 0]);
  const BETWEEN = unit([1, 1, 0, 0]);

  describe("vectors of sentences", () => {
    /** Two paragraphs; the sentence vectors of the first point east and north, that of the second between them. */
    const TEXT = "First paragraph.\n\nSecond paragraph.";
    const withSentences = (text = TEXT, fingerprint = "m1"): Embedded => {
      const { spans } = wordsOnly(text);
      const sentences = [[EAST, NORTH], [BETWEEN]].slice(0, spans.length);
      return { spans, vectors: spans.map(() => BETWEEN), fingerprint, sentences };
    };
    const rowsOf = async (id: string): Promise<number[]> =>
      (await chunks({ accountId: fixture.account.id, id })).map(({ ref }) => ref);
    const matches = async (refs: readonly number[], fingerprint = "m1", vector = NORTH) =>
      fixture.store.index.sentenceMatches({ scope: await scope("ann", tier), vector, fingerprint, refs });
    const missing = async (fingerprint = "m1"): Promise<number[]> =>
      (
        await lackingChunks(fixture.store.index, fingerprint, {
          tiers: ["high_accuracy"],
          lacks: "sentences",
        })
      ).map(({ ref }) => ref);

    it("scores the best sentence of each given chunk", async () => {
      const { id } = await create(TEXT, { tier }, withSentences());
      const [first = 0, second = 0] = await rowsOf(id);
      const found = await matches([second, first]);
      expect(found.map(({ ref }) => ref)).toEqual([second, first]);
      expect(found[1]?.cosine).toBeCloseTo(1, 1);
      expect(found[0]?.cosine).toBeCloseTo(Math.SQRT1_2, 1);
    });

    it("leaves out chunks without sentence vectors, of another model, of another owner, or unknown", async () => {
      const { id } = await create(TEXT, { tier }, withSentences());
      const bare = await create(TEXT, { tier }, { ...withSentences(), sentences: undefined });
      const other = await create(TEXT, { tier, ownerId: "bob" }, withSentences());
      const refs = await rowsOf(id);
      expect(await matches(refs, "m2")).toEqual([]);
      expect(await matches([...(await rowsOf(bare.id)), ...(await rowsOf(other.id)), 77])).toEqual([]);
      expect(await matches(refs)).toHaveLength(2);
    });

    it("accepts sentence vectors later, replaces those of an older model, and ignores chunks that are gone", async () => {
      const { id } = await create(TEXT, { tier }, { ...withSentences(), sentences: undefined });
      const refs = await rowsOf(id);
      const [first = 0] = refs;
      await fixture.store.index.putSentences("m1", [
        { ref: first, vectors: [NORTH] },
        { ref: first + 1_000_000, vectors: [NORTH] },
      ]);
      expect((await matches(refs)).map(({ ref }) => ref)).toEqual([first]);
      await fixture.store.index.putSentences("m2", [{ ref: first, vectors: [EAST] }]);
      expect(await matches(refs)).toEqual([]);
      expect(await matches(refs, "m2", EAST)).toHaveLength(1);
      expect(await matches([first + 1_000_000])).toEqual([]);
    });

    it("removes sentence vectors with their chunks", async () => {
      const { id } = await create(TEXT, { tier }, withSentences());
      const before = await rowsOf(id);
      const at = { accountId: fixture.account.id, id };
      await updateEmbedded(
        fixture.store,
        { ...at, content: "Another paragraph.", nowIso: LATER },
        withSentences("Another paragraph."),
      );
      const after = await rowsOf(id);
      expect(await matches(before.filter((ref) => !after.includes(ref)))).toEqual([]);
      expect(await matches(after)).toHaveLength(1);
      await fixture.store.records.deleteResource({ ...at, nowIso: LATER });
      expect(await matches(after)).toEqual([]);
    });

    it("lists chunks of the tier without sentence vectors, in order", () =>
      alone(async () => {
        await create(TEXT, { tier: "moderate" }, { ...withSentences(), sentences: undefined });
        await create(TEXT, { tier: "fastest" });
        const whole = await create(TEXT, { tier }, withSentences());
        const bare = await create(TEXT, { tier }, wordsOnly(TEXT));
        const elsewhere = await create(TEXT, { tier, ownerId: "bob" }, wordsOnly(TEXT));
        const [first = 0, second = 0] = await rowsOf(bare.id);
        const others = await rowsOf(elsewhere.id);
        expect(await missing()).toEqual([first, second, ...others]);
        expect(await missing("m2")).toEqual([...(await rowsOf(whole.id)), first, second, ...others]);
        await fixture.store.index.putSentences("m1", [{ ref: first, vectors: [] }]);
        expect(await missing()).toEqual([second, ...others]);
      }));
  });
}

import { describe, expect, it } from "vitest";
import { LATER, type StoreFixture } from "./store-fixture.ts";

/** Scores of whole documents by words. */
export function documentsContract(fixture: StoreFixture): void {
  const { create, chunks, scope } = fixture;

  describe("whole documents by words", () => {
    const rowsOf = async (id: string): Promise<number[]> =>
      (await chunks({ accountId: fixture.account.id, id })).map(({ ref }) => ref);
    const matches = async (query: string, refs: readonly number[], ownerId = "ann") =>
      fixture.store.index.documentMatches({ scope: await scope(ownerId), query, refs });
    /** Texts that keep the words of the others rare. */
    const rest = (count: number): string =>
      Array.from({ length: count }, (_, at) => `Something else, part ${at}.`).join("\n\n");

    it("scores the whole document of each chunk", async () => {
      const both = await create("The heron waits.\n\nIt fishes by the river.");
      const one = await create("The heron, a heron.\n\nIt sleeps in the tree.");
      await create(rest(20));
      const [first = 0, second = 0] = await rowsOf(both.id);
      const [other = 0] = await rowsOf(one.id);
      const found = await matches("heron river", [second, other, first]);
      expect(found.map(({ ref, chunks: count }) => [ref, count])).toEqual([
        [second, 2],
        [other, 2],
        [first, 2],
      ]);
      expect(found[0]?.bm25).toBe(found[2]?.bm25);
      expect(found[0]?.bm25).toBeGreaterThan(found[1]?.bm25 ?? 0);
      expect(found[1]?.bm25).toBeGreaterThan(0);
    });

    it("returns no scores for words that occur nowhere", async () => {
      const { id } = await create("The heron waits.");
      const [ref = 0] = await rowsOf(id);
      expect(await matches("albatross", [ref])).toEqual([{ ref, bm25: 0, chunks: 1 }]);
      expect(await matches("", [ref])).toEqual([{ ref, bm25: 0, chunks: 1 }]);
    });

    it("leaves out long documents, other owners' documents and deleted ones", async () => {
      const long = await create(rest(9));
      const fitting = await create(rest(8));
      const gone = await create("Something that is deleted.");
      const others = await create("Something of somebody else.", { ownerId: "bob" });
      const [longRow = 0] = await rowsOf(long.id);
      const [fittingRow = 0] = await rowsOf(fitting.id);
      const [goneRow = 0] = await rowsOf(gone.id);
      const [otherRow = 0] = await rowsOf(others.id);
      await fixture.store.records.deleteResource({
        accountId: fixture.account.id,
        id: gone.id,
        nowIso: LATER,
      });
      const found = await matches("something", [longRow, fittingRow, goneRow, otherRow, 77]);
      expect(found.map(({ ref, chunks: count }) => [ref, count])).toEqual([[fittingRow, 8]]);
      expect(await matches("something", [fittingRow], "nobody")).toEqual([]);
    });
  });
}

import { describe, expect, it } from "vitest";
import { LATER, type StoreFixture } from "./store-fixture.ts";

/** The texts around chunks. */
export function surroundingsContract(fixture: StoreFixture): void {
  const { create, chunks, scope } = fixture;

  describe("the texts around chunks", () => {
    const content = `  one\n\n${["two", "three", "four", "five", "six"].join("\n\n")}\n`;
    const rowsOf = async (id: string): Promise<number[]> =>
      (await chunks({ accountId: fixture.account.id, id })).map(({ ref }) => ref);
    const around = async (refs: readonly number[], chunksMax: number, charsMax = 1000, ownerId = "ann") =>
      fixture.store.index.surroundings({ scope: await scope(ownerId), refs, chunksMax, charsMax });

    it("returns so many chunks on each side, with the text between them and their places", async () => {
      const { id } = await create(content, {
        locations: [
          { start: 0, page: 1 },
          { start: 12, page: 2 },
        ],
      });
      const rows = await rowsOf(id);
      const [, , third = 0, fourth = 0, fifth = 0] = rows;
      expect(await around([fourth], 1)).toEqual([
        {
          start: content.indexOf("three"),
          text: "three\n\nfour\n\nfive\n\n",
          line: 5,
          locations: [{ start: 12, page: 2 }],
          before: "",
          chunks: [third, fourth, fifth].map((ref, at) => {
            const start = content.indexOf(["three", "four", "five"][at] ?? "");
            return { ref, start, end: start + (at === 0 ? 5 : 4) };
          }),
        },
      ]);
    });

    it("returns the whole text where it reaches both ends, as one for several chunks", async () => {
      const { id } = await create(content);
      const [first = 0, , third = 0, , , last = 0] = await rowsOf(id);
      const whole = { start: 0, text: content, line: 1 };
      expect(await around([third], 9)).toMatchObject([whole]);
      expect(await around([last, first], 2)).toMatchObject([whole]);
      expect(await around([first, last], 1)).toMatchObject([
        { text: "  one\n\ntwo\n\n" },
        { text: "five\n\nsix\n" },
      ]);
    });

    it("the texts around chunks ends with the chunk that reaches the number of characters", async () => {
      const { id } = await create(content);
      const [, , third = 0] = await rowsOf(id);
      expect(await around([third], 9, 4)).toMatchObject([{ text: "  one\n\ntwo\n\nthree\n\nfour\n\n" }]);
    });

    it("leaves out chunks of other owners and of deleted documents", async () => {
      const gone = await create(content);
      const others = await create(content, { ownerId: "bob" });
      const rows = [...(await rowsOf(gone.id)), ...(await rowsOf(others.id))];
      const { store, account } = fixture;
      await store.records.deleteResource({ accountId: account.id, id: gone.id, nowIso: LATER });
      expect(await around([...rows, 77], 3)).toEqual([]);
      expect(await around(rows, 3, 1000, "nobody")).toEqual([]);
    });
  });
}

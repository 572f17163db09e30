import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { makeRowList, type RowList } from "../../../src/kb/index/row-list.ts";
import { makeRowSet } from "../../../src/kb/index/row-set.ts";
import { makeSums } from "../../../src/kb/index/sums.ts";

const listOf = (rows: readonly number[]): RowList => {
  const list = makeRowList();
  list.append(rows);
  return list;
};

describe("makeSums", () => {
  const sums = makeSums();
  const lists = fc.array(
    fc.record({
      rows: fc.uniqueArray(fc.nat(600), { maxLength: 300 }).map((rows) => rows.toSorted((a, b) => a - b)),
      weight: fc.integer({ min: 1, max: 64 }),
    }),
    { maxLength: 5 },
  );

  it("sums equal those of adding one by one, tracked or scanned, and are cleared at the end", () => {
    fc.assert(
      fc.property(
        lists,
        fc.nat(300),
        fc.integer({ min: 1, max: 400 }),
        fc.constantFrom(0, 10_000),
        fc.option(fc.nat(500)),
        fc.integer({ min: 1, max: 700 }),
        (given, first, size, entries, allowedFrom, count) => {
          const allowed =
            allowedFrom === null ? undefined : makeRowSet(1000, [{ first: allowedFrom, last: 999 }]);
          const wanted = new Map<number, number>();
          sums.begin({ first, size, entries, allowed });
          for (const { rows, weight } of given) {
            sums.add(listOf(rows), weight);
            for (const row of rows) {
              if (row < first || row >= first + size || row < (allowedFrom ?? 0)) continue;
              wanted.set(row - first, (wanted.get(row - first) ?? 0) + weight);
            }
          }
          const best = [...wanted]
            .map(([offset, sum]) => ({ offset, sum }))
            .toSorted((a, b) => b.sum - a.sum || a.offset - b.offset);
          expect(sums.largest(count)).toEqual(best.slice(0, count));
          sums.end();
          sums.begin({ first: 0, size: 600, entries, allowed: undefined });
          expect(sums.largest(1)).toEqual([]);
          sums.end();
        },
      ),
    );
  });

  it("sums include the first and the last row of a range, and none outside", () => {
    for (const entries of [0, 10_000]) {
      sums.begin({ first: 10, size: 5, entries, allowed: undefined });
      sums.add(listOf([9, 10, 14, 15]), 2);
      expect(sums.largest(9)).toEqual([
        { offset: 0, sum: 2 },
        { offset: 4, sum: 2 },
      ]);
      sums.end();
    }
  });

  it("largest finds the top sums among very many, also if they lie at regular offsets", () => {
    const size = 50_000;
    for (const entries of [0, size]) {
      for (const spread of [1, 16, 7]) {
        sums.begin({ first: 0, size, entries, allowed: undefined });
        sums.add(listOf(Array.from({ length: size }, (_, at) => at)), 1);
        const high = Array.from({ length: 60 }, (_, at) => at * spread + 3);
        sums.add(listOf(high), 5);
        sums.add(listOf([high[40] ?? 0]), 1);
        const wanted = [high[40] ?? 0, ...high.filter((_, at) => at !== 40)];
        expect(sums.largest(60).map(({ offset }) => offset)).toEqual(wanted);
        expect(sums.largest(61).map(({ offset }) => offset)).toEqual([...wanted, 0]);
        sums.end();
      }
      // Fewer large sums than requested, all at multiples of 16.
      sums.begin({ first: 0, size, entries, allowed: undefined });
      sums.add(listOf(Array.from({ length: size }, (_, at) => at)), 1);
      sums.add(listOf(Array.from({ length: 30 }, (_, at) => at * 16)), 9);
      const found = sums.largest(100);
      expect(found).toHaveLength(100);
      expect(found.filter(({ sum }) => sum === 10)).toHaveLength(30);
      expect(found[30]).toEqual({ offset: 1, sum: 1 });
      sums.end();
    }
  });
});

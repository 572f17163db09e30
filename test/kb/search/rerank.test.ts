import { array, assert, double, integer, property, record, tuple, uniqueArray } from "fast-check";
import { describe, expect, it } from "vitest";
import { mixIn, typical } from "../../../src/kb/search/rerank.ts";

const hits = [
  { row: 1, mix: 1 },
  { row: 2, mix: 0.9 },
  { row: 3, mix: 0.8 },
  { row: 4, mix: 0.1 },
];
const rows = (list: readonly { readonly row: number }[]): number[] => list.map(({ row }) => row);

describe("mixIn", () => {
  const judged = new Map([
    [1, 0.1],
    [2, 0.2],
    [3, 0.9],
  ]);

  it("lifts what is judged best", () => {
    const mixed = mixIn(hits, judged, 0.5, 0);
    expect(rows(mixed)).toEqual([3, 1, 2, 4]);
    expect(mixed[0]?.mix).toBeCloseTo(0.85, 10);
    expect(mixed[1]?.mix).toBeCloseTo(0.55, 10);
  });

  it("by a share of nothing moves nothing, by a share of one follows the judge", () => {
    expect(rows(mixIn(hits, judged, 0, 0))).toEqual([1, 2, 3, 4]);
    expect(rows(mixIn(hits, judged, 1, 0))).toEqual([3, 2, 1, 4]);
  });

  it("moves nothing where nothing is judged", () => {
    expect(mixIn(hits, new Map(), 0.5, 0.3)).toEqual(hits);
  });

  it("takes what is not judged for what it is told", () => {
    expect(rows(mixIn(hits, judged, 0.9, 0.5))).toEqual([3, 4, 2, 1]);
  });

  it("keeps every hit, in falling order, within [0, 1]", () => {
    const share = double({ min: 0, max: 1, noNaN: true });
    const list = uniqueArray(record({ row: integer({ min: 0, max: 40 }), mix: share }), {
      selector: ({ row }) => row,
    });
    const judgements = array(tuple(integer({ min: 0, max: 40 }), share));
    assert(
      property(list, judgements, share, share, (given, pairs, by, otherwise) => {
        const mixed = mixIn(
          given.toSorted((a, b) => b.mix - a.mix),
          new Map(pairs),
          by,
          otherwise,
        );
        expect(new Set(rows(mixed))).toEqual(new Set(rows(given)));
        for (const [at, { mix }] of mixed.entries()) {
          expect(mix).toBeGreaterThanOrEqual(0);
          expect(mix).toBeLessThanOrEqual(mixed[at - 1]?.mix ?? 1 + 1e-9);
        }
      }),
    );
  });
});

describe("typical", () => {
  it("is the mean, 0 of nothing", () => {
    expect(typical(new Map([2, 4].entries()))).toBe(3);
    expect(typical(new Map())).toBe(0);
  });
});

import { array, assert, double, integer, property, record, tuple, uniqueArray } from "fast-check";
import { describe, expect, it } from "vitest";
import { blend, meanJudgement } from "../../../src/kb/search/rerank.ts";

const hits = [
  { ref: 1, mix: 1 },
  { ref: 2, mix: 0.9 },
  { ref: 3, mix: 0.8 },
  { ref: 4, mix: 0.1 },
];
const refs = (list: readonly { readonly ref: number }[]): number[] => list.map(({ ref }) => ref);

describe("blend", () => {
  const judged = new Map([
    [1, 0.1],
    [2, 0.2],
    [3, 0.9],
  ]);

  it("blend lifts the hit with the best judgement", () => {
    const mixed = blend(hits, judged, 0.5, 0);
    expect(refs(mixed)).toEqual([3, 1, 2, 4]);
    expect(mixed[0]?.mix).toBeCloseTo(0.85, 10);
    expect(mixed[1]?.mix).toBeCloseTo(0.55, 10);
  });

  it("blend keeps the order at share 0 and follows the judgements at share 1", () => {
    expect(refs(blend(hits, judged, 0, 0))).toEqual([1, 2, 3, 4]);
    expect(refs(blend(hits, judged, 1, 0))).toEqual([3, 2, 1, 4]);
  });

  it("blend returns the hits unchanged without judgements", () => {
    expect(blend(hits, new Map(), 0.5, 0.3)).toEqual(hits);
  });

  it("blend gives a hit without a judgement the fallback", () => {
    expect(refs(blend(hits, judged, 0.9, 0.5))).toEqual([3, 4, 2, 1]);
  });

  it("blend returns every hit, by descending mix within [0, 1]", () => {
    const share = double({ min: 0, max: 1, noNaN: true });
    const list = uniqueArray(record({ ref: integer({ min: 0, max: 40 }), mix: share }), {
      selector: ({ ref }) => ref,
    });
    const judgements = array(tuple(integer({ min: 0, max: 40 }), share));
    assert(
      property(list, judgements, share, share, (given, pairs, by, fallback) => {
        const mixed = blend(
          given.toSorted((a, b) => b.mix - a.mix),
          new Map(pairs),
          by,
          fallback,
        );
        expect(new Set(refs(mixed))).toEqual(new Set(refs(given)));
        for (const [at, { mix }] of mixed.entries()) {
          expect(mix).toBeGreaterThanOrEqual(0);
          expect(mix).toBeLessThanOrEqual(mixed[at - 1]?.mix ?? 1 + 1e-9);
        }
      }),
    );
  });
});

describe("meanJudgement", () => {
  it("meanJudgement returns the mean, or 0 without judgements", () => {
    expect(meanJudgement(new Map([2, 4].entries()))).toBe(3);
    expect(meanJudgement(new Map())).toBe(0);
  });
});

import { assert, nat, property } from "fast-check";
import { describe, expect, it } from "vitest";
import { idf, IDF_MIN, K1, queryFactor, saturation } from "../../../src/kb/lexical/bm25.ts";

describe("BM25", () => {
  it("idf falls with the number of chunks that contain a term, and stays above 0", () => {
    assert(
      property(nat({ max: 1_000_000 }), nat({ max: 1_000_000 }), (a, b) => {
        const [all, holding] = a > b ? [a, b] : [b, a];
        expect(idf(holding, all)).toBeGreaterThan(0);
        expect(idf(holding + 1, all + 1)).toBeLessThanOrEqual(idf(holding, all + 1));
      }),
    );
    expect(idf(12, 10)).toBe(idf(10, 10));
    expect(idf(9_000, 100)).toBe(IDF_MIN);
    expect(idf(10, 10_000)).toBeCloseTo(Math.log((10_000 + 50 - 10 + 0.5) / 10.5), 10);
  });

  it("saturation grows with occurrences up to its limit, and falls with length", () => {
    expect(saturation(1, 100, 100)).toBeCloseTo(1, 10);
    expect(saturation(2, 100, 100)).toBeGreaterThan(saturation(1, 100, 100));
    expect(saturation(1e9, 100, 100)).toBeLessThanOrEqual(K1 + 1);
    expect(saturation(1, 200, 100)).toBeLessThan(saturation(1, 100, 100));
    expect(saturation(0, 100, 100)).toBe(0);
    expect(saturation(3, 300, 100)).toBeCloseTo((3 * 2.2) / (3 + 1.2 * (0.25 + 0.75 * 3)), 10);
  });

  it("queryFactor counts a repeated term more than once but less than each time", () => {
    expect(queryFactor(1)).toBe(1);
    expect(queryFactor(3)).toBeGreaterThan(1);
    expect(queryFactor(3)).toBeLessThan(3);
    expect(queryFactor(4)).toBe(2);
  });
});

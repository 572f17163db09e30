import { array, assert, nat, property } from "fast-check";
import { describe, expect, it } from "vitest";
import { termWeight } from "../../../src/kb/lexical/common-words.ts";
import { matchOf, queryWords } from "../../../src/kb/lexical/word-match.ts";

describe("termWeight", () => {
  it("a function word weighs 0, a common word less than 1, and any other word 1", () => {
    for (const word of queryWords("The which and was not of it, of what they are").terms)
      expect(termWeight(word)).toBe(0);
    for (const word of queryWords("der und das nicht, les est dans, los para del").terms)
      expect(termWeight(word)).toBe(0);
    expect(termWeight("time")).toBeLessThan(0.3);
    for (const word of ["time", "peopl", "system"]) {
      expect(termWeight(word)).toBeGreaterThan(0);
      expect(termWeight(word)).toBeLessThan(1);
    }
    for (const word of ["impel", "kubernet", "日本", "straße", "x7f3"]) expect(termWeight(word)).toBe(1);
  });
});

describe("matchOf", () => {
  const { terms, weights, total } = queryWords("replace the impeller of the bilge pump, the pump");

  it("a match is 0 without a query word and complete with all of them", () => {
    expect(
      matchOf(
        weights,
        terms.map(() => 0),
        100,
      ),
    ).toEqual({ matched: 0, strength: 0 });
    const { matched, strength } = matchOf(
      weights,
      terms.map(() => 1),
      150,
    );
    expect(matched).toBeCloseTo(total, 10);
    expect(strength).toBeCloseTo(total / 2.2, 10);
  });

  it("the strength grows with occurrences, falls with length, and stays below the weight of the matched words", () => {
    const counts = array(nat({ max: 9 }), { minLength: terms.length, maxLength: terms.length });
    assert(
      property(counts, nat({ max: 400 }), (times, words) => {
        const found = matchOf(weights, times, words + 1);
        const more = matchOf(
          weights,
          times.map((count) => count + 1),
          words + 1,
        );
        const longer = matchOf(weights, times, words + 100);
        expect(found.strength).toBeLessThanOrEqual(found.matched);
        expect(found.matched).toBeLessThanOrEqual(total + 1e-9);
        expect(more.strength).toBeGreaterThan(found.strength);
        expect(longer.strength).toBeLessThanOrEqual(found.strength);
        expect(longer.matched).toBe(found.matched);
      }),
    );
  });
});

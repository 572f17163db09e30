import { array, assert, constantFrom, nat, property } from "fast-check";
import { describe, expect, it } from "vitest";
import { termWeight } from "../../../src/kb/lexical/common-words.ts";
import { readTerms } from "../../../src/kb/lexical/fold.ts";
import { matchOf, matchText, queryWords } from "../../../src/kb/lexical/word-match.ts";

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
    for (const word of ["a", "z", "0", "9"].filter((each) => termWeight(each) > 0))
      expect(termWeight(word)).toBe(0.4);
    expect(["x", "7"].map(termWeight)).toEqual([0.4, 0.4]);
  });
});

describe("queryWords", () => {
  it("weighs a repeated word by the root of its times, and each of two spellings half", () => {
    const { terms, factors, weights, total } = queryWords("pump pump pump pump Möhren time");
    expect(terms).toEqual(["pump", "mohren", "moehren", "time"]);
    expect(factors).toEqual([2, 0.5, 0.5, 1]);
    expect(weights).toEqual([2, 0.5, 0.5, termWeight("time")]);
    expect(total).toBeCloseTo(3 + termWeight("time"), 10);
  });

  it("counts a word fully that also stands in its only spelling", () => {
    const { terms, factors } = queryWords("Möhren moehren");
    expect(terms).toEqual(["mohren", "moehren"]);
    expect(factors).toEqual([0.5, Math.SQRT2]);
  });

  it("uses the first 256 terms", () => {
    const { terms } = queryWords(Array.from({ length: 300 }, (_, at) => `w${at}`).join(" "));
    expect([terms.length, terms[0], terms.at(-1)]).toEqual([256, "w0", "w255"]);
  });
});

describe("matchOf", () => {
  it("the strength of a match is that of BM25 with a mean of 150 words", () => {
    const { matched, strength } = matchOf([2, 1, 4], [3, 0, 1], 300);
    expect(matched).toBe(6);
    const saturated = (times: number): number => (times * 2.2) / (times + 1.2 * (0.25 + 0.75 * 2));
    expect(strength).toBeCloseTo((2 * saturated(3) + 4 * saturated(1)) / 2.2, 10);
  });

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

describe("matchText", () => {
  const words = array(
    constantFrom(
      "ties",
      "tied",
      "eyed",
      "ies",
      "i",
      "Tyres",
      "Fees",
      "FEES",
      "harbour",
      "getFeeList",
      "Möhren",
      "moehren",
      "日本語",
      "as",
      "a1",
      "4",
      "pdfs",
    ),
  ).map((each) => each.join(" "));

  it("counts the terms and the words of a text as they are read", () => {
    assert(
      property(words, words, (query, text) => {
        const { terms, weights } = queryWords(query);
        const read = readTerms(text);
        const counts = terms.map((term) => read.filter((each) => each.term === term).length);
        const expected = matchOf(weights, counts, read.filter(({ isExtra }) => !isExtra).length);
        const match = matchText(queryWords(query), text);
        expect(match.matched).toBeCloseTo(expected.matched, 10);
        expect(match.strength).toBeCloseTo(expected.strength, 10);
      }),
    );
  });
});

import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { analyze } from "../../../src/kb/lexical/analyzer.ts";
import { saturation } from "../../../src/kb/lexical/bm25.ts";
import { indexEntry, LEVELS } from "../../../src/kb/lexical/index-text.ts";

const WORDS_MEAN = 150;

/** The terms of a text with the marks of the levels that their weight reaches, computed from their counts. */
function expectedForms(text: string): string[] {
  const { terms, counts, words } = analyze(text);
  return terms.flatMap((term, at) => {
    const weight = saturation(counts[at] ?? 0, words, WORDS_MEAN);
    const marks = ["", ...(weight >= 1.4 ? ["·"] : []), ...(weight >= 1.8 ? ["··"] : [])];
    return marks.map((mark) => `${term}${mark}`);
  });
}

const formsOf = (text: string): string[] => {
  const entry = indexEntry(text).text.toString();
  return entry === "" ? [] : entry.trimEnd().split(" ");
};
const filler = (count: number): string => Array.from({ length: count }, (_, at) => `filler${at}`).join(" ");

describe("the index entry of a text", () => {
  it.each([
    ["one occurrence in a chunk of mean length", `ship ${filler(149)}`, ["ship"]],
    ["two occurrences in a chunk of mean length", `ship ship ${filler(148)}`, ["ship"]],
    ["three occurrences in a chunk of mean length", `ship ship ship ${filler(147)}`, ["ship", "ship·"]],
    ["many occurrences", `${"ship ".repeat(9)}${filler(141)}`, ["ship", "ship·", "ship··"]],
    ["one occurrence in a very short chunk", "ship", ["ship", "ship·"]],
    ["one occurrence in a very long chunk", `ship ${filler(2000)}`, ["ship"]],
    ["six occurrences in a very long chunk", `${"ship ".repeat(6)}${filler(2000)}`, ["ship"]],
  ])("lists a term once, and again for each level that its weight reaches: %s", (_name, text, expected) => {
    expect(formsOf(text).filter((form) => form.startsWith("ship"))).toEqual(expected);
  });

  it("lists every term of any text with the marks of its weight, and counts its words", () => {
    const word = fc.constantFrom("alpha", "beta", "gamma", "東京", "naïve", "delta", "x2");
    fc.assert(
      fc.property(fc.array(word, { maxLength: 60 }), fc.nat(400), (words, fillers) => {
        const text = `${words.join(" ")} ${filler(fillers)}`;
        expect(formsOf(text)).toEqual(expectedForms(text));
        expect(indexEntry(text).words).toBe(analyze(text).words);
      }),
      { numRuns: 60 },
    );
  });

  it("is empty for a text without words", () => {
    expect(indexEntry(" ?! ")).toEqual({ text: Buffer.alloc(0), words: 0 });
  });

  it("stays the same after other texts filled its caches, and when it is large", () => {
    const large = filler(40_000);
    const before = formsOf("one two one");
    expect(formsOf(large)).toEqual(expectedForms(large));
    const long = Array.from({ length: 60 }, (_, at) => `${"Ω".repeat(60)}${at}`).join(" ");
    expect(formsOf(long)).toEqual(expectedForms(long));
    for (let from = 0; from < 300_000; from += 10_000) {
      indexEntry(Array.from({ length: 10_000 }, (_, at) => `v${from + at}`).join(" "));
    }
    expect(formsOf("one two one")).toEqual(before);
    expect(formsOf(large)).toEqual(expectedForms(large));
  });

  it("has ascending levels, whose means lie between them", () => {
    for (const [at, { from, mean, mark }] of LEVELS.entries()) {
      expect(mark).toBe("·".repeat(at));
      expect(mean).toBeGreaterThan(from);
      expect(mean).toBeLessThan(LEVELS[at + 1]?.from ?? 2.2);
    }
  });
});

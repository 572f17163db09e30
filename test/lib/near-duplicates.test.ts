import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { firstOfEach } from "../../src/lib/near-duplicates.ts";

const TEXT =
  "The harbour master opens the outer gate two hours before high water, and closes it when the ebb begins, except in gales from the north.";

describe("firstOfEach", () => {
  it.each([
    ["equal", TEXT],
    [
      "in other case and white space, with Markdown's marks",
      `## ${TEXT.toUpperCase().replaceAll(" ", "\n")}`,
    ],
    [
      "with a heading before it",
      `${TEXT} ${TEXT.replaceAll("gate", "lock")}`,
      `# Gates\n\n${TEXT} ${TEXT.replaceAll("gate", "lock")}`,
    ],
  ])("takes texts that are %s as one", (_how, text, first = TEXT) => {
    expect(firstOfEach([first, text])).toEqual([0, 0]);
  });

  it.each([
    ["another number", TEXT.replace("two", "2"), TEXT.replace("two", "3")],
    ["other signs in code", "if (a < b) return a + b;", "if (a > b) return a - b;"],
    [
      "several other words",
      TEXT,
      TEXT.replace("outer", "inner").replace("opens", "shuts").replace("north", "west"),
    ],
    ["half of its words", TEXT, TEXT.slice(0, TEXT.length / 2)],
    ["no words in common", "Nothing", TEXT],
    ["no words", "", "***"],
  ])("keeps apart texts with %s", (how, a, b) => {
    expect(firstOfEach([a, b])).toEqual(how === "no words" ? [0, 0] : [0, 1]);
  });

  it("names the first of several texts that a text nearly equals", () => {
    for (let round = 0; round < 20; round++) {
      const words = Array.from(
        { length: 200 },
        (_, at) =>
          `word${"abcdefghij"[at % 10]}${"x".repeat(at % 7)}${"y".repeat(at % 13)}${"z".repeat(round)}`,
      );
      const changedFrom = (from: number): string =>
        words.map((word, at) => (at >= from && at < from + 4 ? `${word}q` : word)).join(" ");
      expect(firstOfEach([changedFrom(20), changedFrom(120), words.join(" ")])).toEqual([0, 1, 0]);
    }
  });

  it("decides about each text by those before it alone", () => {
    const words = fc.constantFrom("ebb", "flow", "gate", "1", "2");
    const texts = fc.array(
      fc.array(words, { maxLength: 12 }).map((each) => each.join(" ")),
      { maxLength: 20 },
    );
    fc.assert(
      fc.property(texts, fc.nat(20), (all, count) => {
        const firsts = firstOfEach(all);
        expect(firstOfEach(all.slice(0, count))).toEqual(firsts.slice(0, count));
        for (const [at, first] of firsts.entries()) {
          expect(first).toBeLessThanOrEqual(at);
          expect(firsts[first]).toBe(first);
        }
      }),
    );
  });
});

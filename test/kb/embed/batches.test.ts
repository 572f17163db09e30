import { array, assert, constantFrom, integer, property, string } from "fast-check";
import { describe, expect, it } from "vitest";
import { groupIntoBatches } from "../../../src/kb/embed/batches.ts";

const bounds = { tokens: 100, texts: 4, tokensMax: 50 };
/** A text of this many tokens by the estimate. */
const ofTokens = (tokens: number): string => "x".repeat((tokens - 2) * 3);

describe("groupIntoBatches", () => {
  it.each<[string, string[], number[][]]>([
    ["no text", [], []],
    ["one text", ["a"], [[0]]],
    ["the maximum number of texts", ["a", "b", "c", "d", "e"], [[0, 1, 2, 3], [4]]],
    [
      "the maximum number of tokens, longest first",
      [ofTokens(20), ofTokens(40), ofTokens(40)],
      [[1, 2], [0]],
    ],
    ["padding counts as tokens", [ofTokens(34), ofTokens(5), ofTokens(5)], [[0, 1], [2]]],
    ["a truncated text counts as the model's maximum", [ofTokens(5000), ofTokens(50)], [[0, 1]]],
  ])("groupIntoBatches fills batches within their bounds: %s", (_name, texts, expected) => {
    expect(groupIntoBatches(texts, bounds)).toEqual(expected);
  });

  it("groupIntoBatches puts a text that exceeds the bound into a batch of its own", () => {
    expect(groupIntoBatches([ofTokens(50), ofTokens(50)], { ...bounds, tokens: 10 })).toEqual([[0], [1]]);
  });

  it("groupIntoBatches returns each text once, within the bounds", () => {
    const texts = array(string({ maxLength: 200, unit: constantFrom("a", "é", "日", "😀") }), {
      maxLength: 60,
    });
    assert(
      property(texts, integer({ min: 1, max: 400 }), integer({ min: 1, max: 8 }), (given, tokens, most) => {
        const batches = groupIntoBatches(given, { tokens, texts: most, tokensMax: 50 });
        expect(batches.flat().sort((a, b) => a - b)).toEqual(given.map((_, i) => i));
        for (const batch of batches) {
          expect(batch.length).toBeGreaterThan(0);
          expect(batch.length).toBeLessThanOrEqual(most);
          const bytes = Math.max(...batch.map((i) => Buffer.byteLength(given[i] ?? "")));
          const width = Math.min(50, Math.ceil(bytes / 3) + 2);
          expect(batch.length === 1 || batch.length * width <= tokens).toBe(true);
        }
      }),
    );
  });
});

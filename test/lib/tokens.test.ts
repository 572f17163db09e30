import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { countTokens } from "../../src/lib/tokens.ts";

describe("countTokens", () => {
  it.each([
    ["", 0],
    [" ", 0],
    ["  ", 1],
    ["tide", 1],
    ["Tides", 1],
    ["moonlight", 2],
    ["MAX", 1],
    ["MAXtide", 2],
    ["tidesRise", 2],
    ["the tide rises", 3],
    ["a\n\n  b\r\n", 4],
    ["2026", 2],
    ["--", 1],
    ["=>=", 2],
    ["über", 2],
    ["прилив", 2],
    ["潮汐", 2],
    ["🌊", 2],
    ["\u0001\u0001", 2],
  ])("counts %j as %i", (text, tokens) => {
    expect(countTokens(text)).toBe(tokens);
  });

  const text = fc.string({ unit: fc.constantFrom(...Array.from("aAbB1. \n\t\rüд潮🌊*\0")), maxLength: 60 });

  it("never falls as a text grows at its end", () => {
    fc.assert(
      fc.property(text, text, (a, b) => {
        expect(countTokens(a + b)).toBeGreaterThanOrEqual(countTokens(a));
      }),
    );
  });

  it("counts texts with an empty line between them as at most the texts and one", () => {
    fc.assert(
      fc.property(text, text, (a, b) => {
        expect(countTokens(`${a}\n\n${b}`)).toBeLessThanOrEqual(countTokens(a) + 1 + countTokens(b));
      }),
    );
  });
});

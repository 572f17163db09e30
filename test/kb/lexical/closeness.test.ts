import { assert, constantFrom, array, property } from "fast-check";
import { describe, expect, it } from "vitest";
import { closeness } from "../../../src/kb/lexical/closeness.ts";
import { matchText, queryWords } from "../../../src/kb/lexical/word-match.ts";

describe("closeness", () => {
  const filler = "somewhere ".repeat(12);
  const cases: readonly (readonly [name: string, query: string, text: string, expected: number])[] = [
    ["1 if one clause has all words", "impeller bilge pump", "Replace the impeller of the bilge pump.", 1],
    ["the share of the best clause", "impeller bilge", `impeller ${filler} bilge ${filler} impeller`, 0.5],
    ["1 whatever the order of the words", "bilge pump", `${filler} the pump in the bilge`, 1],
    ["0 without a word of the query", "impeller bilge", "Nothing of it.", 0],
    ["0 for a query of function words", "what is it", "what is it", 0],
    ["0 for an empty text", "impeller", "", 0],
    ["1 at the edge of a window", "impeller bilge", "impeller a b c d e f g h bilge", 1],
    ["less just beyond it", "impeller bilge", "impeller a b c d e f g h i bilge", 0.5],
  ];
  it.each(cases)("closeness is %s", (_name, query, text, expected) => {
    expect(closeness(queryWords(query), text)).toBeCloseTo(expected, 10);
  });

  it("closeness never exceeds the share of the query that the text contains", () => {
    const word = constantFrom("impeller", "bilge", "pump", "time", "the", "Möhren", "getUserName", "日本");
    assert(
      property(array(word, { maxLength: 6 }), array(word, { maxLength: 40 }), (query, text) => {
        const words = queryWords(query.join(" "));
        const close = closeness(words, text.join(" "));
        const matched = matchText(words, text.join(" ")).matched;
        expect(close).toBeLessThanOrEqual(words.total === 0 ? 0 : matched / words.total + 1e-9);
        expect(close > 0).toBe(matched > 0 && words.total > 0);
      }),
    );
  });
});

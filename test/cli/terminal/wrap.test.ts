import { assert, integer, property, string } from "fast-check";
import { expect, it } from "vitest";
import { cellsOf, wrapped } from "../../../src/cli/terminal/wrap.ts";

it.each([
  ["at white space", "one two three", 7, ["one two", "three"]],
  ["within a word that is longer than a line", "abcdefgh ij", 3, ["abc", "def", "gh", "ij"]],
  ["at line feeds", "a\n\nb", 5, ["a", "", "b"]],
  ["wide characters by their cells", "東京都 x", 4, ["東京", "都 x"]],
])("a line breaks: %s", (_name, text, cells, lines) => {
  expect(wrapped(text, cells)).toEqual(lines);
});

it("counts no cell for marks and two for wide characters", () => {
  expect(["abc", "e\u0301", "한글", "🙂"].map(cellsOf)).toEqual([3, 1, 4, 2]);
});

it("never exceeds the width, and loses no character but white space", () => {
  assert(
    property(string({ unit: "grapheme" }), integer({ min: 2, max: 30 }), (text, cells) => {
      const lines = wrapped(text, cells);
      for (const line of lines) expect(cellsOf(line)).toBeLessThanOrEqual(cells);
      expect(lines.join("").replaceAll(/\s/g, "")).toBe(text.replaceAll(/\s/g, ""));
    }),
  );
});

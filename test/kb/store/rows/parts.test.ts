import { describe, expect, it } from "vitest";
import { joinHeadings, joinText, splitHeadings, splitText } from "../../../../src/kb/store/rows/parts.ts";

// The store contract tests any text with any spans; these are the typical shapes.
describe("splitText and joinText", () => {
  it.each([
    ["no chunks", " \n ", []],
    [
      "chunks apart",
      "  one   two  ",
      [
        [2, 5],
        [8, 11],
      ],
    ],
    [
      "chunks that touch",
      "onetwo",
      [
        [0, 3],
        [3, 6],
      ],
    ],
    [
      "chunks that overlap",
      "abcdefgh",
      [
        [0, 5],
        [3, 8],
      ],
    ],
    [
      "a chunk over two others",
      "abcdefgh",
      [
        [0, 4],
        [1, 6],
        [2, 8],
      ],
    ],
  ])("rebuilds a text with %s", (_name, text, bounds) => {
    const spans = bounds.map(([start = 0, end = 0]) => ({ start, end, headings: [] }));
    const parts = splitText(text, spans);
    expect(parts.chunks.map((part) => part.text)).toEqual(
      spans.map(({ start, end }) => text.slice(start, end)),
    );
    expect(joinText(parts.head, parts.chunks)).toBe(text);
  });
});

describe("headings", () => {
  it.each([[[]], [[""]], [["One"]], [["One", "", "Two, with | signs"]]])(
    "returns the headings %j unchanged",
    (headings) => {
      expect(splitHeadings(joinHeadings({ headings }))).toEqual(headings);
    },
  );
});

import { describe, expect, it } from "vitest";
import { pageText } from "../../../../src/kb/ingest/extract/page-text.ts";
import type { TextItem } from "../../../../src/kb/ingest/extract/page-text.ts";

const at = (y: number, str: string, hasEOL = true): TextItem => ({
  str,
  hasEOL,
  height: 10,
  transform: [10, 0, 0, 10, 72, y],
});

describe("pageText", () => {
  it.each<[string, TextItem[], string]>([
    ["nothing", [], ""],
    ["blank items only", [at(700, " ", false), at(700, "")], ""],
    ["pieces of a line", [at(700, "one ", false), at(700, "two")], "one two"],
    ["lines", [at(700, "one"), at(688, "two")], "one\ntwo"],
    [
      "a wider gap",
      [at(700, "one"), at(688, "two"), at(676, "three"), at(650, "four")],
      "one\ntwo\nthree\n\nfour",
    ],
    ["two lines far apart", [at(700, "one"), at(650, "two")], "one\n\ntwo"],
    ["double spacing throughout", [at(700, "one"), at(676, "two"), at(652, "three")], "one\ntwo\nthree"],
    ["a new column", [at(700, "a"), at(688, "b"), at(676, "c"), at(700, "d"), at(688, "e")], "a\nb\nc\nd\ne"],
    [
      "two columns of a table",
      [at(700, "left", false), at(700, "  \t", false), at(700, "right")],
      "left right",
    ],
    ["empty lines between", [at(700, "one"), at(700, ""), at(688, "two")], "one\ntwo"],
    ["a hyphen at the end of a line", [at(700, "adip-"), at(688, "iscing")], "adip-\niscing"],
    ["control characters and half a surrogate pair", [at(700, "a\u0000b\u0007\ud800")], "ab\ufffd"],
    ["a gap of 1.35 line heights", [at(700, "one"), at(690, "two"), at(676.5, "three")], "one\ntwo\nthree"],
    [
      "a gap of more than 1.35 line heights",
      [at(700, "one"), at(690, "two"), at(676.4, "three")],
      "one\ntwo\n\nthree",
    ],
    [
      "a gap of 1.35 usual gaps",
      [at(700, "one"), at(680, "two"), at(660, "three"), at(633, "four"), at(605.9, "five")],
      "one\ntwo\nthree\nfour\n\nfive",
    ],
    [
      "the lower one of two usual gaps",
      [at(700, "one"), at(688, "two"), at(660, "three")],
      "one\ntwo\n\nthree",
    ],
    [
      "double spacing at the most as the usual gap",
      [at(700, "one"), at(660, "two"), at(620, "three"), at(587.6, "four")],
      "one\n\ntwo\n\nthree\nfour",
    ],
    [
      "a gap of 1.35 heights of the larger line",
      [{ ...at(700, "Title"), height: 20 }, at(673, "one"), at(663, "two")],
      "Title\none\ntwo",
    ],
    [
      "a gap of more than 1.35 heights of the larger line, whatever its blank items",
      [
        { ...at(700, "Title", false), height: 20 },
        { ...at(650, " "), height: 99 },
        at(672, "one"),
        at(662, "two"),
      ],
      "Title\n\none\ntwo",
    ],
    ["no line end at the last item", [at(700, "one"), at(688, "two", false)], "one\ntwo"],
  ])("pageText handles %s", (_name, items, expected) => {
    expect(pageText(items)).toBe(expected);
  });
});

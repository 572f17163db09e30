import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { withoutComments } from "../../src/config/comments.ts";

describe("comments in JSON", () => {
  it.each([
    ["to the end of a line", '{"a": 1} // one', { a: 1 }],
    ["between", '{/* a */ "a": /* one */ 1}', { a: 1 }],
    ["over several lines", '{\n/* a\n b */\n"a": 1}', { a: 1 }],
    ["that look like strings", '{// "b": 2,\n"a": 1}', { a: 1 }],
    [
      "in a string are none",
      '{"a": "// no /* no */ comment", "b": "\\"// no"}',
      { a: "// no /* no */ comment", b: '"// no' },
    ],
    ["before the last brace", '{"a": 1, // one\n}', { a: 1 }],
    ["with a comma behind the last item", '{"a": [1, 2,\n /* x */ ], }', { a: [1, 2] }],
    ["with stars", "/***/{/**/}", {}],
    ["with other line ends", '{// one\r\n"a": 1}', { a: 1 }],
  ])("reads a configuration with comments %s", (_name, text, value) => {
    expect(JSON.parse(withoutComments(text))).toEqual(value);
  });

  it.each([
    ["a lone comma", "[,]"],
    ["two commas", '{"a": 1,,}'],
    ["a block comment without an end", '{"a": 1} /* one'],
    ["a lone slash", '{"a": 1} /'],
    ["a string without an end", '{"a": "one'],
  ])("%s is still no JSON", (_name, text) => {
    expect(() => JSON.parse(withoutComments(text)) as unknown).toThrow(SyntaxError);
  });

  it("withoutComments leaves every position unchanged", () => {
    const text = '{ // one\n  "a": 1, /* two\n three */\n  "b" 2 }';
    const clean = withoutComments(text);
    expect(clean).toHaveLength(text.length);
    expect(clean.indexOf('"b"')).toBe(text.indexOf('"b"'));
    expect(clean.split("\n")).toHaveLength(4);
  });

  it("withoutComments leaves JSON without comments unchanged", () => {
    fc.assert(
      fc.property(fc.json(), fc.nat(4), (text, indent) => {
        const written = JSON.stringify(JSON.parse(text), undefined, indent);
        expect(withoutComments(written)).toBe(written);
      }),
    );
  });
});

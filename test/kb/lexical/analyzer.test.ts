import { array, assert, constantFrom, property, string } from "fast-check";
import { describe, expect, it } from "vitest";
import { analyze } from "../../../src/kb/lexical/analyzer.ts";
import { foldedTerms, TERM_CHARS_MAX } from "../../../src/kb/lexical/fold.ts";

const text = array(
  constantFrom(
    "Alpha",
    "running",
    "naïve",
    "ß",
    "東京タワー",
    "x2",
    " ",
    "-",
    "ÉTÉ",
    "ﬁne",
    "한국어",
    "e\u0301",
    "🙂",
    "'",
  ),
  { maxLength: 40 },
).map((parts) => parts.join(""));

describe("analyze", () => {
  it.each([
    ["letters, case and digits", "The 3 Cats2 the", { the: 2, "3": 1, cats2: 1 }],
    ["word forms", "connect connected connecting connections", { connect: 4 }],
    ["accents, ligatures and wide letters", "Café cafe\u0301 ﬁle Ｗｅｂ", { cafe: 2, file: 1, web: 1 }],
    [
      "punctuation as separators",
      "foo_bar-baz/qux.md don't",
      { foo: 1, bar: 1, baz: 1, qux: 1, md: 1, don: 1, t: 1 },
    ],
    ["Cyrillic and Greek", "МОСКВА Αθήνα", { москва: 1, αθηνα: 1 }],
    ["texts without spaces", "東京", { 東: 1, 京: 1, 東京: 1 }],
    [
      "spaced and unspaced scripts in one run",
      "Vue3中文版",
      { vue3: 1, 中: 1, 文: 1, 版: 1, 中文: 1, 文版: 1 },
    ],
    ["no words", " ?! ", {}],
    ["words in capitals", "HTTP PDFs H2O Go", { http: 1, pdf: 1, h2o: 1, go: 1 }],
    ["data in mixed case", "Ab".repeat(9), { ["ab".repeat(9)]: 1 }],
  ])("analyze returns the terms of a text: %s", (_name, input, expected) => {
    const { terms, counts, words } = analyze(input);
    expect(Object.fromEntries(terms.map((term, at) => [term, counts[at]]))).toEqual(expected);
    expect(words).toBe(counts.reduce((sum, count) => sum + count, 0));
  });

  it.each([
    ["a name in mixed case", "getUserName", ["getusernam", "get", "user", "name"]],
    ["an acronym in a name", "HTTPServer", ["httpserver", "http", "server"]],
    ["digits in a name", "utf8Text", ["utf8text", "utf8", "text"]],
    ["single letters", "iPhone", ["iphon", "phone"]],
    ["an umlaut", "Müller", ["muller", "mueller"]],
    ["a sharp s", "Straße", ["straße", "strass"]],
    ["both", "alleMöhren", ["allemohren", "allemoehren", "all", "mohren", "moehren"]],
  ])("analyze adds parts and other spellings, which are no words of their own: %s", (_name, input, terms) => {
    expect(analyze(input)).toMatchObject({ terms, words: 1 });
  });

  it("analyze truncates an overlong word between characters", () => {
    expect(analyze("x".repeat(500)).terms).toEqual(["x".repeat(TERM_CHARS_MAX)]);
    const [term = ""] = analyze("\u{1d7d8}".repeat(100).normalize("NFC") + "\u{10450}".repeat(100)).terms;
    expect(term.isWellFormed()).toBe(true);
    expect(term.length).toBeLessThanOrEqual(TERM_CHARS_MAX);
  });

  it("analyze returns the same terms on the fast path and the slow path", () => {
    assert(
      property(text, (input) => {
        const { terms, counts } = analyze(input);
        const expected = new Map<string, number>();
        for (const term of foldedTerms(input)) expected.set(term, (expected.get(term) ?? 0) + 1);
        expect(new Map(terms.map((term, at) => [term, counts[at]]))).toEqual(expected);
      }),
    );
  });

  it("analyze returns terms of letters, digits and marks only, for any text", () => {
    assert(
      property(string({ unit: "binary", maxLength: 200 }), (input) => {
        for (const term of analyze(input).terms) expect(term).toMatch(/^[\p{L}\p{N}\p{M}\p{Co}]+$/u);
      }),
    );
  });

  it("analyze stays correct after its vocabulary overflows", () => {
    for (let from = 0; from < 300_000; from += 1000) {
      analyze(Array.from({ length: 1000 }, (_, at) => `w${from + at}`).join(" "));
    }
    expect(analyze("one two one")).toEqual({ terms: ["on", "two"], counts: [2, 1], words: 3 });
  });
});

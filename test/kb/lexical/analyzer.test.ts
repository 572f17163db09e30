import { array, assert, constantFrom, property, string } from "fast-check";
import { describe, expect, it } from "vitest";
import { analyze } from "../../../src/kb/lexical/analyzer.ts";
import { foldedTerms, TERM_CHARS_MAX } from "../../../src/kb/lexical/fold.ts";
import { anyCharacter } from "../../any-character.ts";

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

  it.each([
    ["eight parts", "Ab".repeat(8), 1 + 1],
    ["nine parts", "Ab".repeat(9), 1],
    ["64 characters", `A${"b".repeat(61)}Cd`, 1 + 2],
    ["65 characters", `A${"b".repeat(62)}Cd`, 1],
  ])(
    "analyze adds the parts of a word of at most eight parts and 64 characters: %s",
    (_name, word, count) => {
      expect(analyze(word).terms).toHaveLength(count);
    },
  );

  it("analyze counts parts and spellings, and each repeated word", () => {
    const { terms, counts, words } = analyze("UserName Müller UserName Müller user");
    expect(Object.fromEntries(terms.map((term, at) => [term, counts[at]]))).toEqual({
      usernam: 2,
      user: 3,
      name: 2,
      muller: 2,
      mueller: 2,
    });
    expect(words).toBe(5);
  });

  it("analyze reads words whose hashes collide in part, and a long text after a short one", () => {
    // Words of two letters collide in their first hash, which is 31 times one letter plus the other.
    expect(analyze("ab bC bc").terms).toEqual(["ab", "bc"]);
    const pairs = Array.from({ length: 26 * 26 }, (_, at) =>
      String.fromCharCode(97 + Math.floor(at / 26), 97 + (at % 26)),
    );
    expect(analyze(pairs.join(" ")).terms).toEqual([...new Set(foldedTerms(pairs.join(" ")))]);
    const long = Array.from({ length: 20_000 }, (_, at) => `q${at}`).join(" ");
    expect(analyze(long)).toMatchObject({ words: 20_000, terms: { length: 20_000 } });
    expect(analyze("naïve ".repeat(9000))).toMatchObject({ words: 9000, counts: [9000] });
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
      property(string({ unit: anyCharacter, maxLength: 200 }), (input) => {
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

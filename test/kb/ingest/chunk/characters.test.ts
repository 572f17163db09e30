import { describe, expect, it } from "vitest";
import {
  breaksAnywhere,
  isCloser,
  isSpace,
  isWordBreak,
  skipSpace,
  trimSpace,
  wholeCharacterAfter,
  wholeCharacterBefore,
  wordEnd,
} from "../../../../src/kb/ingest/chunk/characters.ts";

const UNITS = Array.from({ length: 0x10000 }, (_, code) => code);
const charactersWhere = (is: (code: number) => boolean): string => String.fromCharCode(...UNITS.filter(is));
/** First and last unit of every run of units that a predicate accepts. */
const rangesWhere = (is: (code: number) => boolean): string[] =>
  UNITS.filter((code) => is(code) && !(code > 0 && is(code - 1))).map((from) => {
    let to = from;
    while (to < 0xffff && is(to + 1)) to++;
    return `${from.toString(16)}-${to.toString(16)}`;
  });

describe("the units of a text", () => {
  it("isSpace accepts exactly what String.prototype.trim removes", () => {
    expect(charactersWhere(isSpace)).toBe(
      charactersWhere((code) => String.fromCharCode(code).trim().length === 0),
    );
  });

  it("isCloser accepts closing quotes, brackets, stops and marks of emphasis", () => {
    expect(charactersWhere(isCloser)).toBe("!\"')*.?]_`»’”…、。〉》」』】！），？");
  });

  it("breaksAnywhere accepts Chinese, Japanese, their punctuation and full-width forms", () => {
    expect(rangesWhere(breaksAnywhere)).toEqual(["2e80-9fff", "f900-faff", "ff01-ffef"]);
  });
});

describe("white space and words", () => {
  it.each([
    ["  a b ", 0, 6, 2, 5],
    ["a", 0, 1, 0, 1],
    ["   ", 0, 3, 3, 0],
    ["   ", 1, 2, 2, 1],
    ["", 0, 0, 0, 0],
  ])("skipSpace and trimSpace stay within the range: %j from %i to %i", (text, from, to, first, end) => {
    expect([skipSpace(text, from, to), trimSpace(text, from, to)]).toEqual([first, end]);
  });

  it.each([
    ["one two", "one"],
    ["one", "one"],
    ["don't!", "don't!"],
    ["東京", "東"],
    ["東。京", "東。"],
    ["東」。京", "東」。"],
    ["Vue中", "Vue"],
    ["中Vue", "中"],
    ["한국어 다", "한국어"],
    ["か\u3099き", "か\u3099"],
    [" a", ""],
  ])("wordEnd ends the first word of %j after %j", (text, word) => {
    expect(text.slice(0, wordEnd(text, 0, text.length))).toBe(word);
    expect(wordEnd(text, 0, Math.min(1, text.length))).toBeLessThanOrEqual(1);
    expect(wordEnd(`x ${text}`, 2, text.length + 2)).toBe(2 + word.length);
  });

  it("isWordBreak never separates two units of scripts with spaces", () => {
    const code = (text: string): number => text.charCodeAt(0);
    expect(isWordBreak(code("a"), code("b"))).toBe(false);
    expect(isWordBreak(code("a"), code("中"))).toBe(true);
    expect(isWordBreak(code("中"), code("a"))).toBe(true);
    expect(isWordBreak(code("한"), code("국"))).toBe(false);
    expect(isWordBreak(0x2e7f, 0x2e80)).toBe(true);
  });
});

describe("cuts between whole characters", () => {
  const FAMILY = "👩\u200d👩\u200d👧";
  it.each([
    ["plain letters", "abcd", 2, 2, 2],
    ["a surrogate pair", "a🙂b", 2, 1, 3],
    ["a combining accent", "ae\u0301b", 2, 1, 3],
    ["several combining accents", "ae\u0301\u0302b", 3, 1, 4],
    ["a variation selector", "a☀\ufe0fb", 2, 1, 3],
    ["a keycap", "a1\u20e3b", 2, 1, 3],
    ["a voiced Japanese letter", "aか\u3099b", 2, 1, 3],
    ["a half-voiced Japanese letter", "aは\u309ab", 2, 1, 3],
    ["a skin tone", "a👍🏽b", 3, 1, 5],
    ["the darkest skin tone", "a👍🏿b", 3, 1, 5],
    ["the lightest skin tone", "a👍🏻b", 3, 1, 5],
    ["an emoji that looks like a tone by its first half", "a👍🌍b", 3, 3, 3],
    ["joined emoji", `a${FAMILY}b`, 4, 1, 1 + FAMILY.length],
    ["the start of a text", "\u0301a", 0, 0, 0],
    ["the end of a text", "ab", 2, 2, 2],
  ])("cuts leave %s whole", (_name, text, at, before, after) => {
    expect(wholeCharacterBefore(text, -1, at)).toBe(before);
    expect(wholeCharacterAfter(text, at, text.length)).toBe(after);
  });

  it("cuts keep every character whole that joins the one before it", () => {
    const joins = rangesWhere((code) => wholeCharacterBefore(`a${String.fromCharCode(code)}b`, 0, 1) !== 1);
    expect(joins).toEqual([]);
    const moved = rangesWhere((code) => wholeCharacterAfter(`a${String.fromCharCode(code)}b`, 1, 3) !== 1);
    expect(moved).toEqual(["300-36f", "200d-200d", "20d0-20ff", "3099-309a", "fe00-fe0f"]);
  });

  it("split a cluster that is too long or starts before the range, but never a surrogate pair", () => {
    const marks = "\u0301".repeat(100);
    expect(wholeCharacterBefore(`a${marks}`, 0, 60)).toBe(60);
    expect(wholeCharacterAfter(`a${marks}b`, 2, 102)).toBe(2);
    expect(wholeCharacterBefore(`a${"\u0301".repeat(40)}`, 0, 33)).toBe(33);
    expect(wholeCharacterBefore(`ab${"\u0301".repeat(40)}`, 0, 33)).toBe(1);
    expect(wholeCharacterAfter(`a${"\u0301".repeat(32)}b`, 1, 50)).toBe(33);
    expect(wholeCharacterAfter(`a${"\u0301".repeat(33)}b`, 1, 50)).toBe(1);
    expect(wholeCharacterBefore("🙂", 0, 1)).toBe(2);
    expect(wholeCharacterBefore("a🙂", 0, 2)).toBe(1);
    expect(wholeCharacterAfter("a🙂b", 2, 2)).toBe(3);
    expect(wholeCharacterAfter("ae\u0301b", 2, 2)).toBe(2);
  });
});

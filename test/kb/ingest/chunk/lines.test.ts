import { describe, expect, it } from "vitest";
import {
  closesFence,
  fenceLength,
  headingLevel,
  headingTitle,
  isDelimiterRow,
  lineKind,
  underlineLevel,
  type LineKind,
} from "../../../../src/kb/ingest/chunk/lines.ts";

/** Runs a reader of lines on a line between others that it must not read. */
function within<T>(line: string, read: (text: string, begin: number, end: number) => T): T {
  const before = "#`-=1\n";
  return read(`${before}${line}\`#-=.`, before.length, before.length + line.length);
}

describe("the kind of a line", () => {
  it.each<[LineKind, readonly string[]]>([
    ["heading", ["#", "# a", "###### a", "#\ta", "## "]],
    [
      "text",
      ["#a", "####### a", "``", "~~", "```a`b```", "``` `", "_ a", "**bold**", "__init__", "*a", "-a"],
    ],
    ["text", ["+a", "--a", "- -"].slice(0, 2)],
    ["fence", ["```", "~~~", "````js", "~~~ `a`", "```a b"]],
    ["rule", ["---", "***", "___", "- - -", "*\t*\t*", "-----", "_ _ _"]],
    ["item", ["-", "*", "+", "- a", "* a", "+ a", "-\ta", "- -", "* * a", "--- a".slice(2)]],
    ["item", ["1.", "1. a", "1) a", "0. a", "9) a", "123456789. a", "12)\ta"]],
    [
      "text",
      ["1", "12", "1.a", "1)a", "1: a", "1234567890. a", "a1. a", "/1. a", "1234567890", ":. a", "1.5 a"],
    ],
    ["text", ["--", "**", "__", "_", "--- a", "-.-", "plain", "Ünï", "“quoted”"]],
    ["row", ["|", "| a | b |", "|---|"]],
    ["quote", [">", "> a", ">>a"]],
  ])("the kind of a line is %s for %j", (kind, lines) => {
    expect(lines.map((line) => [line, within(line, lineKind)])).toEqual(lines.map((line) => [line, kind]));
  });
});

describe("headings", () => {
  it.each([
    ["# a", 1, "a"],
    ["## a ##", 2, "a"],
    ["### a#", 3, "a#"],
    ["# C#", 1, "C#"],
    ["#### a # #", 4, "a #"],
    ["##### a ########", 5, "a"],
    ["######", 6, ""],
    ["#######", 0, ""],
    ["#a", 0, "a"],
    ["#   a b   ", 1, "a b"],
    ["a", 0, "a"],
    ["# #", 1, ""],
  ])("%j has level %i and the title %j", (line, level, title) => {
    expect([within(line, headingLevel), within(line, headingTitle)]).toEqual([level, title]);
  });

  it("headings have titles of at most 200 units, cut between whole characters", () => {
    const titleOf = (title: string): string => within(`# ${title}`, headingTitle);
    expect(titleOf("x".repeat(200))).toBe("x".repeat(200));
    expect(titleOf("x".repeat(201))).toBe("x".repeat(200));
    expect(titleOf(`${"x".repeat(199)} yz`)).toBe(`${"x".repeat(199)} `);
    expect(titleOf(`${"x".repeat(200)} `)).toBe("x".repeat(200));
    expect(titleOf(`${"x".repeat(199)}🙂`)).toBe(`${"x".repeat(199)}\ufffd`);
  });

  it.each([
    ["==", 1],
    ["=====", 1],
    ["--", 2],
    ["---", 2],
    ["=", 0],
    ["-", 0],
    ["==a", 0],
    ["=-", 0],
    ["-=", 0],
    ["== ==", 0],
    ["++", 0],
    ["__", 0],
    ["aa", 0],
  ])("a line of %j under a text has level %i", (line, level) => {
    expect(within(line, underlineLevel)).toBe(level);
  });
});

describe("fences", () => {
  it.each([
    ["``", 0],
    ["```", 3],
    ["`````", 5],
    ["~~", 0],
    ["~~~~", 4],
    ["```js", 3],
    ["```js`", 0],
    ["~~~js`", 3],
  ])("%j opens with %i marks", (line, marks) => {
    expect(within(line, fenceLength)).toBe(marks);
  });

  it.each([
    ["```", 3, true],
    ["````", 3, true],
    ["``", 3, false],
    ["```", 4, false],
    ["```a", 3, false],
    ["``` ", 3, false],
    ["~~~", 3, false],
    ["a```", 3, false],
  ])("%j closes a fence of %i backticks or more: %s", (line, length, closes) => {
    expect(within(line, (text, begin, end) => closesFence(text, begin, end, 0x60, length))).toBe(closes);
  });
});

describe("the delimiter row of a table", () => {
  it.each([
    ["|---|", true],
    ["---|---", true],
    ["| :-: |\t--: |", true],
    ["-", true],
    ["|:|", false],
    ["||", false],
    ["|---|a", false],
    ["a---", false],
    ["|-_-|", false],
  ])("%j is one: %s", (line, expected) => {
    expect(within(line, isDelimiterRow)).toBe(expected);
  });
});

import { expect, it } from "vitest";
import { prose, unbroken, wrappedProse } from "../../../src/cli/terminal/prose.ts";

it.each([
  ["leaves a line that fits", "a  b  c", "a  b  c"],
  [
    "breaks a message at white space",
    "the folder is not there any more",
    "the folder is not\nthere any more",
  ],
  [
    "indents below the text of a named line",
    "next  it is read again later",
    "next  it is read\n      again later",
  ],
  ["keeps an indentation", "  it is read again later", "  it is read again\n  later"],
  [
    "never breaks a command",
    "run `kbsync status --failed -c a.json` first",
    "run\n`kbsync status --failed -c a.json`\nfirst",
  ],
  [
    "leaves a line that is a command",
    "  kbsync status --failed -c a.json",
    "  kbsync status --failed -c a.json",
  ],
  ["never breaks a word", "see /a/very/long/path/of/a/file", "see\n/a/very/long/path/of/a/file"],
  ["loses no lone backtick", "a ` b c d e f g h i j k", "a ` b c d e f g h i\nj k"],
  ["keeps the gap before a word", "a  b c d e f g h i j  k l m", "a  b c d e f g h i j\n   k l m"],
  ["indents below the last column", "ok  disk  it is full now", "ok  disk  it is full\n          now"],
  [
    "indents below the last column that leaves room",
    "ok  a long column  is full",
    "ok  a long column\n    is full",
  ],
  ["breaks a sentence that names the program", "now kbsync is not running", "now kbsync is not\nrunning"],
  ["takes each line for itself", "one two three four five\nsix", "one two three four\nfive\nsix"],
])("%s", (_name, text, expected) => {
  expect(wrappedProse(text, 20)).toBe(expected);
});

it.each([
  ["as wide as the terminal", 70, 70],
  ["no wider than is easy to read", 200, 100],
  ["80 cells wide where the terminal does not say", 0, 80],
  ["80 cells wide without a terminal's size", undefined, 80],
])("a message is %s", (_name, columns, cells) => {
  const text = prose({ stdout: { isTTY: true, columns } }, "word ".repeat(100));
  expect(Math.max(...text.split("\n").map((line) => line.length))).toBe(cells - ((cells + 1) % 5));
});

it("never breaks a path, and shows it as it is without a terminal", () => {
  const text = `failed   ${unbroken("my notes/of a year.md")}: it is empty`;
  expect(wrappedProse(text, 24)).toBe("failed   my notes/of a year.md:\n         it is empty");
  expect(prose({ stdout: { isTTY: false, columns: 24 } }, text)).toBe(
    "failed   my notes/of a year.md: it is empty",
  );
});

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
    "run `kbsync ls --failed -c a.json` first",
    "run\n`kbsync ls --failed -c a.json`\nfirst",
  ],
  ["leaves a line that is a command", "  kbsync ls --failed -c a.json", "  kbsync ls --failed -c a.json"],
  ["never breaks a word", "see /a/very/long/path/of/a/file", "see\n/a/very/long/path/of/a/file"],
  ["loses no lone backtick", "a ` b c d e f g h i j k", "a ` b c d e f g h i\nj k"],
  ["takes each line for itself", "one two three four five\nsix", "one two three four\nfive\nsix"],
])("%s", (_name, text, expected) => {
  expect(wrappedProse(text, 20)).toBe(expected);
});

it("never breaks a path, and shows it as it is without a terminal", () => {
  const text = `failed   ${unbroken("my notes/of a year.md")}: it is empty`;
  expect(wrappedProse(text, 24)).toBe("failed   my notes/of a year.md:\n         it is empty");
  const stdout = { isTTY: false, columns: 24 } as Parameters<typeof prose>[0]["stdout"];
  expect(prose({ stdout }, text)).toBe("failed   my notes/of a year.md: it is empty");
});

import { describe, expect, it } from "vitest";
import { pieces, sentence } from "../../../src/console/view/sentence.ts";

describe("a reason of the daemon", () => {
  it.each([
    ["the file is empty", "The file is empty."],
    ["The PDF is damaged.", "The PDF is damaged."],
    ["it failed (No text.)", "It failed (No text.)"],
    ["45 deletes at once, 75 % of the source", "45 deletes at once, 75 % of the source."],
    [".mp3 is sound: no text is taken from it", ".mp3 is sound: no text is taken from it."],
    ["`kbsync retry` tries it", "`kbsync retry` tries it."],
    ["readme.md is left out", "readme.md is left out."],
    ["", ""],
  ])("%j reads %j", (words, read) => {
    expect(sentence(words)).toBe(read);
  });

  it.each([
    ["plain", ["plain"]],
    ["or `kbsync approve` deletes", ["or ", "[kbsync approve]", " deletes"]],
    ["`a` and `b`", ["[a]", " and ", "[b]"]],
    ["one ` alone", ["one ` alone"]],
    ["`a` and ` alone", ["[a]", " and ` alone"]],
  ])("%j has its commands apart", (words, parts) => {
    expect(pieces(words).map(({ text, isCode }) => (isCode ? `[${text}]` : text))).toEqual(parts);
  });
});

import * as fc from "fast-check";
import { expect, it } from "vitest";
import { openStreamedProse } from "../../../src/cli/terminal/streamed-prose.ts";
import { cellsOf } from "../../../src/cli/terminal/wrap.ts";

/** Wraps a text that arrives in pieces. */
function wrap(pieces: readonly string[], columns = 20): string {
  let shown = "";
  const prose = openStreamedProse(
    (text) => (shown += text),
    () => columns,
  );
  for (const piece of pieces) prose.push(piece);
  prose.end();
  return shown;
}

it.each([
  ["leaves a line that fits", "a  b  c\n", "a  b  c\n"],
  ["breaks a line at white space", "The new crane lifts forty tons.", "The new crane lifts\nforty tons."],
  [
    "indents below the text of a list's item",
    "- The new crane lifts forty tons.\n12. The ferry sails at noon.",
    "- The new crane\n  lifts forty tons.\n12. The ferry sails\n    at noon.",
  ],
  [
    "never breaks code between backticks",
    "Then run `kbsync status --failed` once more.",
    "Then run\n`kbsync status --failed`\nonce more.",
  ],
  [
    "never breaks a command without backticks",
    "You might now run kbsync status --failed -c a.json",
    "You might now run\nkbsync status --failed -c a.json",
  ],
  [
    "leaves a block of code",
    "See:\n```sh\necho one two three four five six\n```\nThen read on, and rest.",
    "See:\n```sh\necho one two three four five six\n```\nThen read on, and\nrest.",
  ],
  [
    "leaves an indented block of code",
    "    echo one two three four five six",
    "    echo one two three four five six",
  ],
  ["leaves a table", "| crane | forty tons | old |", "| crane | forty tons | old |"],
  [
    "never breaks a link",
    "Read https://example.com/a/long/path?of=words first.",
    "Read\nhttps://example.com/a/long/path?of=words\nfirst.",
  ],
  ["leaves no mark alone on a line", "- https://example.com/a/long", "- https://example.com/a/long"],
  ["counts wide characters twice", "今日は今日は 今日は今日は", "今日は今日は\n今日は今日は"],
  [
    "forgets a lone backtick at the end of its line",
    "a ` b\none two three four five",
    "a ` b\none two three four\nfive",
  ],
])("%s", (_name, text, expected) => {
  expect(wrap([text])).toBe(expected);
});

it("shows each word as soon as it is complete", () => {
  const shown: string[] = [];
  const prose = openStreamedProse(
    (text) => shown.push(text),
    () => 80,
  );
  for (const piece of ["The new cr", "ane lifts", " forty"]) prose.push(piece);
  expect(shown).toEqual(["The new", " crane", " lifts"]);
  prose.end();
  expect(shown.join("")).toBe("The new crane lifts forty");
});

it("follows the width of the terminal", () => {
  let columns = 80;
  let shown = "";
  const prose = openStreamedProse(
    (text) => (shown += text),
    () => columns,
  );
  prose.push("one two three four five six seven\n");
  columns = 15;
  prose.push("one two three four five six seven\n");
  expect(shown).toBe("one two three four five six seven\none two three\nfour five six\nseven\n");
});

const word = fc.constantFrom(
  "a",
  "crane",
  "`x y`",
  "-",
  "1.",
  "```",
  "|",
  "    ",
  "  ",
  "\n",
  "kbsync",
  "今日",
  "https://example.com/a/b",
);
const text = fc.array(word, { maxLength: 40 }).map((words) => words.join(" ").replaceAll(/ ?\n ?/g, "\n"));

it("streamed prose is the same however the text is cut, and changes nothing but white space between words", () => {
  fc.assert(
    fc.property(text, fc.integer({ min: 1, max: 9 }), (whole, size) => {
      const pieces = whole.match(new RegExp(`[^]{1,${size}}`, "gu")) ?? [];
      const shown = wrap(pieces);
      expect(shown).toBe(wrap([whole]));
      expect(shown.replaceAll(/\s+/g, "")).toBe(whole.replaceAll(/\s+/g, ""));
    }),
  );
});

it("writes no line that is too long, if no word and no code is", () => {
  const plain = fc.array(fc.stringMatching(/^[a-z]{1,9}$/), { maxLength: 60 });
  fc.assert(
    fc.property(plain, (words) => {
      const lines = wrap([words.filter((each) => each !== "kbsync").join(" ")]).split("\n");
      expect(Math.max(...lines.map(cellsOf))).toBeLessThanOrEqual(20);
    }),
  );
});

import { expect, it } from "vitest";
import { openLineSplitter } from "../../../src/sync/control/lines.ts";

/** The lines of these pieces, as far as they are taken; undefined stands for a line that is too long. */
const split = (bytesMax: number, ...pieces: (string | Buffer)[]): unknown[] => {
  const splitter = openLineSplitter(bytesMax);
  return pieces.map((piece) => splitter.push(Buffer.from(piece)));
};

it.each([
  ["one line in pieces", ["a", "b", "c\n"], [[], [], ["abc"]]],
  ["several lines in a piece, and an empty one", ["a\n\nb\nc", "\n"], [["a", "", "b"], ["c"]]],
  ["as many bytes as are allowed, with and without an end", ["12345", "\n12345\n"], [[], ["12345", "12345"]]],
  ["more than is allowed before its end", ["123456"], [undefined]],
  ["more than is allowed in several pieces", ["123", "456"], [[], undefined]],
  ["more than is allowed with its end", ["123", "456\n"], [[], undefined]],
  ["more than is allowed after a line", ["1\n", "123456\n"], [["1"], undefined]],
])("takes %s", (_what, pieces, lines) => {
  expect(split(5, ...pieces)).toEqual(lines);
});

it("cuts no character between two pieces", () => {
  const bytes = Buffer.from("ä\n");
  expect(split(5, bytes.subarray(0, 1), bytes.subarray(1))).toEqual([[], ["ä"]]);
});

import { expect, it } from "vitest";
import { linesOf } from "../../../../src/sync/daemon/control/client.ts";

/** The lines of these pieces; "too long" at the end if one is longer than 5 bytes. */
async function split(...pieces: (string | Buffer)[]): Promise<string[]> {
  const stream = (async function* () {
    for (const piece of pieces) yield await Promise.resolve(Buffer.from(piece));
  })();
  const lines: string[] = [];
  try {
    for await (const line of linesOf(stream, 5)) lines.push(line);
  } catch (error) {
    lines.push(error instanceof RangeError ? "too long" : "another failure");
  }
  return lines;
}

it.each([
  ["one line in pieces", ["a", "b", "c\n"], ["abc"]],
  ["several lines in a piece, and an empty one", ["a\n\nb\nc", "\n"], ["a", "", "b", "c"]],
  ["a last line without an end", ["a\nb", "c"], ["a", "bc"]],
  ["the maximum number of bytes, with and without an end", ["12345", "\n12345\n"], ["12345", "12345"]],
  ["too many bytes before its end", ["123456"], ["too long"]],
  ["too many bytes in several pieces", ["123", "456"], ["too long"]],
  ["too many bytes with its end", ["123", "456\n"], ["too long"]],
  ["too many bytes after a line", ["1\n", "123456\n"], ["1", "too long"]],
])("a stream is split into lines: %s", async (_what, pieces, lines) => {
  expect(await split(...pieces)).toEqual(lines);
});

it("splits no character between two pieces", async () => {
  const bytes = Buffer.from("ä\n");
  expect(await split(bytes.subarray(0, 1), bytes.subarray(1))).toEqual(["ä"]);
});

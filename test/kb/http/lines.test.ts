import { describe, expect, it } from "vitest";
import { linesOf } from "../../../src/kb/http/lines.ts";

/** The text byte by byte in a piece that is used again for each: what keeps pieces instead of copying them garbles them. */
async function* oneByOne(text: string): AsyncGenerator<Buffer> {
  const piece = Buffer.alloc(1);
  for (const byte of Buffer.from(text)) {
    piece[0] = byte;
    yield piece;
  }
}

async function linesIn(text: string, lineBytesMax = 100): Promise<(string | undefined)[]> {
  const lines: (string | undefined)[] = [];
  for await (const { number, bytes } of linesOf(oneByOne(text), lineBytesMax, 1000)) {
    lines.push(bytes && `${number} ${bytes.toString()}`);
  }
  return lines;
}

describe("lines of a body that comes byte by byte", () => {
  it.each([
    ["are whole", "tides\nmoon\n", ["1 tides", "2 moon"]],
    ["need no end of the last one", "tides\nmoon", ["1 tides", "2 moon"]],
    ["are counted where they are blank, and left out", "tides\n\n \t\r\nmoon\n", ["1 tides", "4 moon"]],
    [
      "have a limit each",
      `${"x".repeat(100)}\n${"x".repeat(101)}\nmoon\n`,
      [`1 ${"x".repeat(100)}`, undefined, "3 moon"],
    ],
  ])("%s", async (_name, text, lines) => {
    expect(await linesIn(text)).toEqual(lines);
  });

  it("are left out where up to 1000 in a row are blank, and refused beyond", async () => {
    const blank = "\n".repeat(1000);
    const lines: number[] = [];
    const bytes = Buffer.from(`${blank}a\n${blank}b\n${blank}\n`);
    const read = async (): Promise<void> => {
      for await (const { number } of linesOf(oneByOne(bytes.toString()), 100, bytes.length))
        lines.push(number);
    };
    await expect(read()).rejects.toMatchObject({ refusal: "invalid_body" });
    expect(lines).toEqual([1001, 2002]);
  });

  it("are blank only where they are short: of a long one whoever parses it says so, elsewhere", async () => {
    const long = " ".repeat(2000);
    const lines: (number | undefined)[] = [];
    for await (const { bytes } of linesOf(oneByOne(`${long}\n`), 4000, 4000)) lines.push(bytes?.length);
    expect(lines).toEqual([2000]);
  });

  it("are refused where they are too many bytes together", async () => {
    await expect(linesIn("moon\n".repeat(201))).rejects.toMatchObject({ refusal: "body_too_large" });
  });
});

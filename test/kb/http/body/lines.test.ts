import { describe, expect, it } from "vitest";
import { linesOf } from "../../../../src/kb/http/body/lines.ts";

/** Yields a text byte by byte in one reused buffer, which reveals code that keeps pieces instead of copying them. */
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

describe("lines of a body that arrives byte by byte", () => {
  it.each([
    ["returns complete lines", "tides\nmoon\n", ["1 tides", "2 moon"]],
    ["needs no line break after the last line", "tides\nmoon", ["1 tides", "2 moon"]],
    ["counts blank lines but leaves them out", "tides\n\n \t\r\nmoon\n", ["1 tides", "4 moon"]],
    [
      "limits each line",
      `${"x".repeat(100)}\n${"x".repeat(101)}\nmoon\n`,
      [`1 ${"x".repeat(100)}`, undefined, "3 moon"],
    ],
  ])("%s", async (_name, text, lines) => {
    expect(await linesIn(text)).toEqual(lines);
  });

  it("leaves out up to 1000 blank lines in a row and refuses more", async () => {
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

  it("passes on a long blank line, which is parsed off the event loop", async () => {
    const long = " ".repeat(2000);
    const lines: (number | undefined)[] = [];
    for await (const { bytes } of linesOf(oneByOne(`${long}\n`), 4000, 4000)) lines.push(bytes?.length);
    expect(lines).toEqual([2000]);
  });

  it("refuses a body of too many bytes", async () => {
    await expect(linesIn("moon\n".repeat(201))).rejects.toMatchObject({ refusal: "body_too_large" });
  });

  it("takes a body of exactly the allowed bytes", async () => {
    expect(await linesIn("moon\n".repeat(200))).toHaveLength(200);
  });

  it("counts the bytes of a line from their arrival, and releases blank lines and those that are too long", async () => {
    let held = 0;
    const seen: [line: string | undefined, held: number][] = [];
    const memory = {
      hold: (bytes: number) => {
        held += bytes;
        expect(held).toBeLessThanOrEqual(11);
      },
      release: (bytes: number) => (held -= bytes),
    };
    const text = `tides\n   \n${"x".repeat(30)}\nmoon`;
    for await (const { bytes } of linesOf(oneByOne(text), 10, 1000, memory)) {
      seen.push([bytes?.toString(), held]);
      memory.release(bytes?.length ?? 0);
    }
    expect(seen).toEqual([
      ["tides", 5],
      [undefined, 0],
      ["moon", 4],
    ]);
    expect(held).toBe(0);
  });

  it("stops at what counting the bytes throws", async () => {
    const full = new Error("full");
    const memory = {
      hold: () => {
        throw full;
      },
      release: () => undefined,
    };
    const read = async (): Promise<void> => {
      for await (const line of linesOf(oneByOne("a\n"), 10, 1000, memory)) expect(line).toBeUndefined();
    };
    await expect(read()).rejects.toBe(full);
  });

  it.each([
    [1024, 0],
    [1025, 1],
  ])("a blank line of %i bytes yields %i lines", async (bytes, lines) => {
    const found = [];
    for await (const line of linesOf(oneByOne(`${" ".repeat(bytes)}\n`), 4000, 4000)) found.push(line);
    expect(found).toHaveLength(lines);
  });
});

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { announcedEncoding, decodeTextFile, readHead } from "../../../../src/kb/ingest/extract/text-file.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "kbsync-text-"));
});
afterAll(() => rm(folder, { recursive: true }));

async function decode(
  bytes: Uint8Array,
  signal?: AbortSignal,
): Promise<{ text: string; pieces: number; end: string }> {
  const path = join(folder, "file");
  await writeFile(path, bytes);
  const pieces = decodeTextFile(path, signal);
  let text = "";
  for (let count = 0; ; count++) {
    const next = await pieces.next();
    if (next.done === true) return { text, pieces: count, end: next.value };
    text += next.value;
  }
}
const utf16be = (text: string): Buffer => Buffer.from(text, "utf16le").swap16();

describe("a text file", () => {
  it.each([
    ["UTF-8", Buffer.from("é日😀"), "é日😀"],
    ["UTF-8 with a mark", Buffer.from("\ufeffé"), "é"],
    ["UTF-16 LE", Buffer.from("\ufeffé😀", "utf16le"), "é😀"],
    ["UTF-16 BE", utf16be("\ufeffé😀"), "é😀"],
  ])("a text file is decoded by its mark: %s", async (_name, bytes, text) => {
    expect(await decode(bytes)).toMatchObject({ text, end: "text" });
  });

  it("a text file is decoded in slices of 256 KB, with characters across their borders", async () => {
    const text = `x${"日".repeat(200_000)}`;
    expect(await decode(Buffer.from(text))).toEqual({ text, pieces: 3, end: "text" });
  });

  it.each([
    ["with an invalid byte", Buffer.from([0x61, 0xff])],
    ["with a NUL", Buffer.from("a\0b")],
    ["that ends within a character", Buffer.from("é").subarray(0, 1)],
    ["with half a surrogate pair in UTF-16", Buffer.from([0xff, 0xfe, 0x00, 0xd8, 0x61, 0x00])],
  ])("a text file is no text %s", async (_name, bytes) => {
    expect(await decode(bytes)).toMatchObject({ end: "not-text" });
  });

  it("a text file ends at the first slice that is no text", async () => {
    const bytes = Buffer.alloc(1024 * 1024, "a");
    bytes[300 * 1024] = 0;
    expect(await decode(bytes)).toEqual({ text: "a".repeat(256 * 1024), pieces: 1, end: "not-text" });
  });

  it("a text file is read no further once it is aborted", async () => {
    await expect(decode(Buffer.from("a"), AbortSignal.abort())).rejects.toMatchObject({ code: "ABORT_ERR" });
  });
});

it("the head of a file has the bytes asked for, or fewer if it is shorter", async () => {
  const path = join(folder, "head");
  await writeFile(path, "abcdef");
  const head = async (bytes: number) => Buffer.from(await readHead(path, bytes)).toString();
  expect([await head(4), await head(9)]).toEqual(["abcd", "abcdef"]);
});

it.each([
  [[0xff, 0xfe], "utf-16le"],
  [[0xfe, 0xff], "utf-16be"],
  [[0xff, 0xff], "utf-8"],
  [[0xfe, 0xfe], "utf-8"],
  [[0xff], "utf-8"],
  [[], "utf-8"],
])("the encoding that %j announces is %s", (head, encoding) => {
  expect(announcedEncoding(Uint8Array.from(head))).toBe(encoding);
});

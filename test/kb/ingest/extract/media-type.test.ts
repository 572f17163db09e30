import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { deflateSync } from "node:zlib";
import { assert, asyncProperty, constantFrom, string } from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openExtractor } from "../../../../src/kb/ingest/extract/extract.ts";
import { detectMediaType } from "../../../../src/kb/ingest/extract/media-type.ts";
import { buildPdf, textPage } from "./pdf-fixture.ts";
import { anyCharacter } from "../../../any-character.ts";

let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "kbsync-media-"));
});
afterAll(() => rm(folder, { recursive: true }));

async function write(bytes: Uint8Array): Promise<string> {
  const path = join(folder, "file");
  await writeFile(path, bytes);
  return path;
}

const latin1 = (text: string): Buffer => Buffer.from(text, "latin1");
const utf16be = (text: string): Buffer => Buffer.from(text, "utf16le").swap16();
/** Longer than one read, with a character of three bytes across every possible border. */
const long = `${"日本語".repeat(200_000)}.`;

describe("detectMediaType", () => {
  it.each<[string, Uint8Array, string]>([
    ["ASCII", latin1("hello\n"), "text/plain"],
    ["one letter", latin1("a"), "text/plain"],
    ["UTF-8 with letters of every length", Buffer.from("é 日 😀"), "text/plain"],
    ["UTF-8 with a mark", Buffer.from("\ufeffhello"), "text/plain"],
    ["a mark alone", Buffer.from("\ufeff"), "text/plain"],
    ["UTF-16 LE with a mark", Buffer.from("\ufeffhello 😀", "utf16le"), "text/plain"],
    ["UTF-16 BE with a mark", utf16be("\ufeffhello 😀"), "text/plain"],
    ["text of several reads", Buffer.from(long), "text/plain"],
    ["UTF-16 of several reads", Buffer.from(`\ufeffx${"😀".repeat(300_000)}`, "utf16le"), "text/plain"],
    ["HTML", latin1("<!doctype html><script>alert(1)</script>"), "text/plain"],
    ["SVG", latin1('<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"/>'), "text/plain"],
    ["text with the mark of a bitmap", latin1("BM is how this sentence begins"), "text/plain"],
    ["a script with the mark of a GIF", latin1("GIF89a/*abcdefgh*/=1;alert(1)"), "text/plain"],
    ["a PDF", buildPdf([textPage(["hello"])]), "application/pdf"],
    [
      "a binary PDF",
      buildPdf([{ bytes: deflateSync("BT ET"), filter: "/Filter /FlateDecode" }]),
      "application/pdf",
    ],
    [
      "a PDF after some junk",
      Buffer.concat([Buffer.from([0, 1, 2]), buildPdf([textPage(["x"])])]),
      "application/pdf",
    ],
    ["PNG", pngHead("IDAT"), "image/png"],
    ["animated PNG", pngHead("acTL"), "image/png"],
    ["JPEG", Buffer.from([0xff, 0xd8, 0xff, 0xe0, 0, 16, 0x4a, 0x46, 0x49, 0x46, 0]), "image/jpeg"],
    [
      "GIF",
      Buffer.concat([latin1("GIF89a"), Buffer.from([1, 0, 1, 0, 0x80, 0, 0, 255, 255, 255])]),
      "image/gif",
    ],
    [
      "WebP",
      Buffer.concat([latin1("RIFF"), Buffer.from([26, 0, 0, 0]), latin1("WEBPVP8L"), Buffer.alloc(18)]),
      "image/webp",
    ],
    ["BMP", Buffer.concat([latin1("BM"), Buffer.from([70, 0, 0, 0]), Buffer.alloc(60)]), "image/bmp"],
    [
      "TIFF, little-endian",
      Buffer.concat([latin1("II*\0"), Buffer.from([8, 0, 0, 0]), Buffer.alloc(32)]),
      "image/tiff",
    ],
    [
      "TIFF, big-endian",
      Buffer.concat([latin1("MM\0*"), Buffer.from([0, 0, 0, 8]), Buffer.alloc(32)]),
      "image/tiff",
    ],
  ])("detectMediaType takes %s", async (_name, bytes, expected) => {
    expect(await detectMediaType(await write(bytes))).toBe(expected);
  });

  it.each<[string, Uint8Array, RegExp]>([
    ["ISO 8859-1", latin1("caf\xe9 au lait"), /unknown type, or text that is not UTF-8/],
    [
      "one bad byte at the end of a long text",
      Buffer.concat([Buffer.from(long), Buffer.from([0xff])]),
      /not UTF-8/,
    ],
    ["UTF-8 that breaks off within a character", Buffer.from("日本").subarray(0, 5), /not UTF-8/],
    ["UTF-16 without a mark", Buffer.from("hello", "utf16le"), /not UTF-8/],
    [
      "UTF-16 of an odd length",
      Buffer.concat([Buffer.from("\ufeffhi", "utf16le"), latin1("x")]),
      /not UTF-8/,
    ],
    ["UTF-16 with half a pair", Buffer.from("\ufeff\ud800x", "utf16le"), /not UTF-8/],
    ["UTF-32", Buffer.from([0xff, 0xfe, 0, 0, 0x41, 0, 0, 0]), /not UTF-8/],
    ["text with a NUL", latin1("hello\0"), /unknown type/],
    ["ZIP", Buffer.concat([latin1("PK\x03\x04"), Buffer.alloc(40)]), /found application\/zip/],
    ["ELF", Buffer.concat([latin1("\x7fELF\x02\x01\x01"), Buffer.alloc(60)]), /found application\/x-elf/],
    ["gzip", Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3]), /found application\/gzip/],
    [
      "an archive with a PDF's mark in it",
      Buffer.concat([latin1("PK\x03\x04\0\0%PDF-"), Buffer.alloc(40)]),
      /zip/,
    ],
  ])("refuses %s and says what it found", async (_name, bytes, message) => {
    const path = await write(bytes);
    await expect(detectMediaType(path)).rejects.toMatchObject({
      code: "unsupported_media_type",
      message: expect.stringMatching(message) as string,
      subject: path,
    });
  });

  it("refuses an empty file", async () => {
    await expect(detectMediaType(await write(new Uint8Array()))).rejects.toMatchObject({
      code: "empty_file",
    });
  });

  it("takes every text in UTF-8 and UTF-16, and it comes back the same", async () => {
    const extractor = openExtractor();
    const texts = string({ unit: anyCharacter, minLength: 1 }).filter(
      (text) => !/\0|^\ufeff|^%PDF-/.test(text) && text.isWellFormed(),
    );
    await assert(
      asyncProperty(texts, constantFrom("utf8", "utf16le"), async (text, encoding) => {
        const path = await write(Buffer.from(`\ufeff${text}`, encoding));
        const mediaType = await detectMediaType(path);
        expect(mediaType).toBe("text/plain");
        expect(await extractor.extractText({ path, mediaType })).toEqual({ text });
      }),
      { numRuns: 30 },
    );
  });
});

function pngHead(chunk: string): Buffer {
  const header = Buffer.alloc(25);
  header.writeUInt32BE(13, 0);
  header.write("IHDR", 4, "latin1");
  const next = Buffer.alloc(8 + 20);
  next.writeUInt32BE(8, 0);
  next.write(chunk, 4, "latin1");
  return Buffer.concat([Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]), header, next]);
}

import { expect, it } from "vitest";
import { decodeBitmap, readBitmapHeader } from "../../../../src/kb/ingest/extract/bitmap.ts";

interface Form {
  readonly bits: number;
  readonly compression?: number;
  readonly height?: number;
  readonly headerBytes?: number;
  /** What stands between the header and the pixels: a palette or masks, in hex. */
  readonly table?: string;
  /** The masks in a longer header, in hex. */
  readonly masks?: string;
}

/** Builds a bitmap that is three pixels wide and two high, from the hex digits of its pixels. */
function build(pixels: string, form: Form): Buffer {
  const { bits, compression = 0, height = 2, headerBytes = 40, table = "", masks = "" } = form;
  const header = Buffer.alloc(14 + headerBytes);
  const between = fromHex(table);
  header.write("BM");
  header.writeUInt32LE(header.length + between.length, 10);
  header.writeUInt32LE(headerBytes, 14);
  if (headerBytes === 12) {
    header.writeUInt16LE(3, 18);
    header.writeUInt16LE(height, 20);
    header.writeUInt16LE(bits, 24);
  } else {
    header.writeInt32LE(3, 18);
    header.writeInt32LE(height, 22);
    header.writeUInt16LE(bits, 28);
    header.writeUInt32LE(compression, 30);
    fromHex(masks).copy(header, 54);
  }
  return Buffer.concat([header, between, fromHex(pixels)]);
}

function fromHex(digits: string): Buffer {
  return Buffer.from(digits.replaceAll(" ", ""), "hex");
}

/** Decodes a bitmap into the colours of its rows. */
function rowsOf(bytes: Buffer): string[] {
  const { width, height, data } = decodeBitmap(bytes, readBitmapHeader(bytes));
  return Array.from({ length: height }, (_, y) =>
    Array.from({ length: width }, (__, x) =>
      data.subarray((y * width + x) * 3, (y * width + x) * 3 + 3).toString("hex"),
    ).join(" "),
  );
}

/** Blue, green, red, unused: black, red, white. */
const PALETTE = "000000000000ff00ffffff00";
const PICTURE = ["ff0000 000000 ffffff", "000000 ffffff ff0000"];

it.each<[name: string, bytes: Buffer]>([
  ["24 bits", build("000000 ffffff 0000ff 000000 0000ff 000000 ffffff 000000", { bits: 24 })],
  [
    "24 bits from the top",
    build("0000ff 000000 ffffff 000000 000000 ffffff 0000ff 000000", { bits: 24, height: -2 }),
  ],
  [
    "32 bits with an unused byte",
    build("00000000 ffffff00 0000ff00 0000ff00 00000000 ffffff00", { bits: 32 }),
  ],
  [
    "32 bits with masks in a longer header",
    build("000000ff ffffffff ff0000ff ff0000ff 000000ff ffffffff", {
      bits: 32,
      compression: 3,
      headerBytes: 56,
      masks: "ff000000 00ff0000 0000ff00",
    }),
  ],
  [
    "32 bits with transparency",
    build("000000ff 00000000 ff0000ff ff0000ff 000000ff ff00ff00", {
      bits: 32,
      compression: 3,
      headerBytes: 56,
      masks: "ff000000 00ff0000 0000ff00 000000ff",
    }),
  ],
  ["16 bits", build("0000 ff7f 007c 0000 007c 0000 ff7f 0000", { bits: 16 })],
  [
    "16 bits with masks",
    build("0000 ffff 00f8 0000 00f8 0000 ffff 0000", {
      bits: 16,
      compression: 3,
      table: "00f80000 e0070000 1f000000",
    }),
  ],
  ["8 bits", build("00020100 01000200", { bits: 8, table: PALETTE.padEnd(256 * 8, "0") })],
  ["4 bits", build("02100000 10200000", { bits: 4, table: PALETTE.padEnd(16 * 8, "0") })],
  [
    "8 bits of OS/2",
    build("00020100 01000200", {
      bits: 8,
      headerBytes: 12,
      table: "0000000000ffffffff".padEnd(256 * 6, "0"),
    }),
  ],
  [
    "runs of bytes",
    build("0003 00020100 0000 0101 0100 0102 0001", {
      bits: 8,
      compression: 1,
      table: PALETTE.padEnd(256 * 8, "0"),
    }),
  ],
  [
    "runs of nibbles",
    build("0003 0210 0000 0110 0202 0001", { bits: 4, compression: 2, table: PALETTE.padEnd(16 * 8, "0") }),
  ],
])("a bitmap is decoded: %s", (_name, bytes) => {
  expect(rowsOf(bytes)).toEqual(PICTURE);
});

it.each<[name: string, bytes: Buffer, message: RegExp]>([
  ["with missing pixels", build("000000 ffffff", { bits: 24 }), /range/],
  ["that is only half a header", build("", { bits: 24 }).subarray(0, 30), /range/],
  ["with runs that never end", build("0000", { bits: 8, compression: 1, table: "00".repeat(1024) }), /range/],
  ["with a JPEG in it", build("ffd8", { bits: 24, compression: 4 }), /compression 4/],
  ["of 2 bits a pixel", build("ff", { bits: 2 }), /2 bits a pixel/],
])("refuses a bitmap %s", (_name, bytes, message) => {
  expect(() => rowsOf(bytes)).toThrow(message);
});

it("takes runs that leave the picture, and indexes without a colour, for black", () => {
  const palette = PALETTE.padEnd(256 * 8, "0");
  expect(rowsOf(build("ff01 0000 03c8 0001", { bits: 8, compression: 1, table: palette }))).toEqual([
    "000000 000000 000000",
    "ff0000 ff0000 ff0000",
  ]);
});

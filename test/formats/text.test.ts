import { describe, expect, it } from "vitest";
import * as fc from "fast-check";
import { beginsBinary, decodeText } from "../../src/formats/text.ts";

const GERMAN = "Größe, Maß und Übermut: häufig genügt schon eine äußerst kurze Prüfung der Eingänge. ".repeat(
  8,
);
const RUSSIAN =
  "Все счастливые семьи похожи друг на друга, каждая несчастливая семья несчастлива по-своему. Все смешалось в доме Облонских. ".repeat(
    4,
  );

/** Bytes of a text in a one-byte encoding, found by decoding each byte. */
function encodeSingle(text: string, encoding: string): Buffer {
  const decoder = new TextDecoder(encoding);
  const table = new Map(
    Array.from({ length: 256 }, (_, byte) => [decoder.decode(Uint8Array.of(byte)), byte]),
  );
  return Buffer.from(Array.from(text, (character) => table.get(character) ?? 0x3f));
}

/** Bytes of a text in a two-byte encoding, likewise. */
function encodeDouble(text: string, encoding: string): Buffer {
  const decoder = new TextDecoder(encoding);
  const table = new Map<string, readonly number[]>();
  for (let lead = 0x81; lead <= 0xfe; lead++) {
    for (let trail = 0x40; trail <= 0xfe; trail++) {
      const character = decoder.decode(Uint8Array.of(lead, trail));
      if (character.length === 1 && character !== "\uFFFD" && !table.has(character))
        table.set(character, [lead, trail]);
    }
  }
  return Buffer.from(
    Array.from(text).flatMap((character) => table.get(character) ?? [character.charCodeAt(0) & 0x7f]),
  );
}

/** The characters next to the surrogates, and the very last one. */
const ENDS = "\uD7FF\uE000\u{10FFFF}";

function utf32(text: string, littleEndian: boolean): Buffer {
  const codes = Array.from(text, (character) => character.codePointAt(0) ?? 0);
  const bytes = Buffer.alloc(codes.length * 4);
  codes.forEach((code, at) =>
    littleEndian ? bytes.writeUInt32LE(code, at * 4) : bytes.writeUInt32BE(code, at * 4),
  );
  return bytes;
}

/** Encodes UTF-32BE, including invalid codes. */
function utf32Codes(codes: readonly number[]): Buffer {
  const bytes = Buffer.alloc(codes.length * 4);
  codes.forEach((code, at) => bytes.writeUInt32BE(code, at * 4));
  return bytes;
}

function textOf(bytes: Buffer): string | undefined {
  const decoded = decodeText(bytes);
  return decoded.kind === "text" ? decoded.text : undefined;
}

describe("decodeText", () => {
  const english = "The quick brown fox jumps over the lazy dog.\r\nTwice.\n";
  const japanese = "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。".repeat(6);
  const chinese = "道可道，非常道。名可名，非常名。无名天地之始；有名万物之母。".repeat(6);
  const korean = "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다. ".repeat(6);

  const cases: [what: string, bytes: Buffer, text: string][] = [
    ["nothing", Buffer.alloc(0), ""],
    ["ASCII", Buffer.from(english), english],
    ["UTF-8", Buffer.from(GERMAN + japanese), GERMAN + japanese],
    ["UTF-8 with a mark", Buffer.from(`\uFEFF${GERMAN}`), GERMAN],
    ["terminal colours", Buffer.from("\u001B[31mred\u001B[0m\n"), "\u001B[31mred\u001B[0m\n"],
    ["UTF-16LE with a mark", Buffer.from(`\uFEFF${GERMAN}`, "utf16le"), GERMAN],
    ["UTF-16BE with a mark", Buffer.from(`\uFEFF${japanese}`, "utf16le").swap16(), japanese],
    ["UTF-16LE without", Buffer.from(GERMAN, "utf16le"), GERMAN],
    ["UTF-16BE without", Buffer.from(GERMAN, "utf16le").swap16(), GERMAN],
    ["UTF-32LE at the ends of its ranges", utf32(`\uFEFF${ENDS}`, true), ENDS],
    ["UTF-32LE with a second mark", utf32("\uFEFFa\uFEFFb", true), "a\uFEFFb"],
    ["UTF-32LE that was cut", utf32("\uFEFFab", true).subarray(0, -1), "a"],
    ["UTF-32BE beyond Unicode", utf32Codes([0xfeff, 0x61, 0x110000, 0x62]), "a\uFFFDb"],
    ["UTF-32BE with surrogates", utf32Codes([0xfeff, 0xd800, 0x61, 0xdfff]), "\uFFFDa\uFFFD"],
    ["a mark alone", Buffer.from("\uFEFF"), ""],
    ["a single byte", Buffer.from([0xe4]), "ä"],
    [
      "terminal colours beside an umlaut",
      Buffer.from("\u001B[31mrot\u001B[0m für Übermut\n".repeat(3), "latin1"),
      "\u001B[31mrot\u001B[0m für Übermut\n".repeat(3),
    ],
    [
      "tabs and form feeds in an old encoding",
      Buffer.from(`\b\t\n\v\f\r${GERMAN}`, "latin1"),
      `\b\t\n\v\f\r${GERMAN}`,
    ],
    [
      "a bell a hundred bytes in an old encoding",
      Buffer.from(`${"ä".repeat(99)}\u0007`, "latin1"),
      `${"ä".repeat(99)}\u0007`,
    ],
    ["UTF-32LE with a mark", utf32(`\uFEFF${english}😀`, true), `${english}😀`],
    ["UTF-32BE with a mark", utf32(`\uFEFF${english}😀`, false), `${english}😀`],
    ["UTF-32LE without", utf32(english, true), english],
    ["UTF-32BE without", utf32(english, false), english],
    ["ISO-8859-1", Buffer.from(GERMAN, "latin1"), GERMAN],
    ["windows-1252 with its quotes", encodeSingle(`“${GERMAN}” – €`, "windows-1252"), `“${GERMAN}” – €`],
    ["windows-1251", encodeSingle(RUSSIAN, "windows-1251"), RUSSIAN],
    ["KOI8-R", encodeSingle(RUSSIAN, "koi8-r"), RUSSIAN],
    ["Shift_JIS", encodeDouble(japanese, "shift_jis"), japanese],
    ["EUC-KR", encodeDouble(korean, "euc-kr"), korean],
    ["GB18030", encodeDouble(chinese, "gb18030"), chinese],
    [
      "a late first umlaut",
      Buffer.from("plain line\n".repeat(9000) + GERMAN, "latin1"),
      "plain line\n".repeat(9000) + GERMAN,
    ],
    [
      "ISO-2022-JP",
      Buffer.from('\u001B$B8cGZ$OG-$G$"$k!#L>A0$O$^$@L5$$!#\u001B(B\n'.repeat(8), "latin1"),
      "吾輩は猫である。名前はまだ無い。\n".repeat(8),
    ],
  ];
  it.each(cases)("decodeText decodes %s", (_, bytes, text) => {
    expect(textOf(bytes)).toBe(text);
  });

  it("keeps UTF-8 with one broken byte readable", () => {
    const bytes = Buffer.concat([Buffer.from(japanese), Buffer.from([0xe5, 0x90]), Buffer.from(japanese)]);
    expect(textOf(bytes)).toBe(`${japanese}\uFFFD${japanese}`);
  });

  const binary: [what: string, bytes: Buffer][] = [
    ["zero bytes", Buffer.from("abc\0def")],
    [
      "two bells in a hundred bytes of an old encoding",
      Buffer.from(`${"ä".repeat(98)}\u0007\u0007`, "latin1"),
    ],
    ["UTF-32 with zero characters", utf32(`\uFEFF${GERMAN}\0`, true)],
    ["a zero byte at the end of a long text", Buffer.from(`${"text ".repeat(40_000)}\0`)],
    ["an ELF header", Buffer.from("7f454c4602010100000000000000000003003e00", "hex")],
    [
      "compressed data",
      Buffer.from(Array.from({ length: 3000 }, (_, at) => 1 + ((at * 7919 + at * at * 31) % 255))),
    ],
    [
      "UTF-16 whose second half is data",
      Buffer.concat([Buffer.from("text ".repeat(9), "utf16le"), Buffer.alloc(4000)]),
    ],
  ];
  it.each(binary)("takes %s for binary", (_, bytes) => {
    expect(decodeText(bytes).kind).toBe("binary");
  });

  it("names an encoding that it cannot read", () => {
    const bytes = Buffer.from(`\u001B$)C\n${"\u000E0!3*\u000F ".repeat(40)}`, "latin1");
    expect(decodeText(bytes)).toMatchObject({
      kind: "unknown",
      reason: expect.stringContaining("ISO-2022-KR"),
    });
  });

  it("returns any text written as UTF-8, always well-formed", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme", maxLength: 200 }), (text) => {
        fc.pre(!text.includes("\0") && !text.startsWith("\uFEFF"));
        expect(textOf(Buffer.from(text))).toBe(text);
      }),
    );
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        expect(textOf(Buffer.from(bytes))?.isWellFormed() ?? true).toBe(true);
      }),
    );
  });
});

describe("beginsBinary", () => {
  it("never rejects by its first bytes what decodeText can read", () => {
    for (const bytes of [
      Buffer.from(GERMAN, "latin1"),
      Buffer.from(GERMAN, "utf16le"),
      utf32(GERMAN, true),
    ]) {
      expect(beginsBinary(bytes)).toBe(false);
    }
    expect(beginsBinary(Buffer.from("ab\0\0\0c\0"))).toBe(true);
    // Further on a file is read whole before it is judged.
    expect(beginsBinary(Buffer.from(`${"a".repeat(64 * 1024)}\0`))).toBe(false);
  });
});

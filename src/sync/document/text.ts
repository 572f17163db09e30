import { isAscii, isUtf8 } from "node:buffer";
import { lazyModule } from "../../lib/lazy-module.ts";

const chardet = lazyModule((load) => load("chardet") as typeof import("chardet"));

/** What came of taking bytes for text. */
export type Decoded =
  | { readonly kind: "text"; readonly text: string }
  /** No text in any encoding; in words. */
  | { readonly kind: "binary"; readonly reason: string }
  /** Text in an encoding that cannot be read; in words. */
  | { readonly kind: "unknown"; readonly reason: string };

/** Bytes looked at to tell text from binary data. */
const LOOK_BYTES = 64 * 1024;
/** Bytes given to the statistics of legacy encodings, which take 0.15 ms a kilobyte. */
const SAMPLE_BYTES = 16 * 1024;

const BINARY: Decoded = {
  kind: "binary",
  reason: "binary data of an unknown kind: no text is taken from it",
};

/**
 * Decodes a whole text file. UTF-8 needs no mark; UTF-16 and UTF-32 are known by their mark or by where their zero
 * bytes stand; other encodings by their statistics. A mark is not part of the text. What an encoding cannot express
 * becomes U+FFFD, so the text is always well-formed.
 */
export function decodeText(bytes: Buffer): Decoded {
  const hasZero = bytes.includes(0);
  if (!hasZero && isUtf8(bytes)) {
    if (bytes.includes(ESCAPE) && isAscii(bytes)) return decodeEscapes(bytes);
    return {
      kind: "text",
      text: bytes.toString("utf8", startsWith(bytes, UTF8_MARK) ? UTF8_MARK.length : 0),
    };
  }
  const wide = wideEncoding(bytes);
  if (wide !== undefined) return decodeWide(bytes, wide);
  if (hasZero || manyControls(bytes)) return BINARY;
  return decodeLegacy(bytes);
}

/** Whether the first bytes of a file already show that `decodeText` would find no text in it. */
export function beginsBinary(bytes: Buffer): boolean {
  const look = bytes.subarray(0, LOOK_BYTES);
  return look.includes(0) && wideEncoding(look) === undefined;
}

type Wide = "utf-16le" | "utf-16be" | "utf-32le" | "utf-32be";

const UTF8_MARK = Buffer.from([0xef, 0xbb, 0xbf]);
// UTF-32's mark begins like UTF-16's, so it is asked for first.
const MARKS: readonly (readonly [Wide, Buffer])[] = [
  ["utf-32le", Buffer.from([0xff, 0xfe, 0, 0])],
  ["utf-32be", Buffer.from([0, 0, 0xfe, 0xff])],
  ["utf-16le", Buffer.from([0xff, 0xfe])],
  ["utf-16be", Buffer.from([0xfe, 0xff])],
];

/** UTF-16 or UTF-32 by its mark, or by its zero bytes: most characters of nearly every text are below U+0100. */
function wideEncoding(bytes: Buffer): Wide | undefined {
  const marked = MARKS.find(([, mark]) => startsWith(bytes, mark));
  if (marked !== undefined) return marked[0];

  const look = bytes.subarray(0, LOOK_BYTES);
  const units = Math.floor(look.length / 4);
  if (units === 0) return undefined;
  const zeros = [0, 0, 0, 0] as [number, number, number, number];
  for (let at = 0; at < units * 4; at++) if (look[at] === 0) zeros[(at % 4) as 0 | 1 | 2 | 3]++;
  const [a, b, c, d] = zeros.map((count) => count / units) as [number, number, number, number];

  const most = 0.6;
  const few = 0.05;
  if (a <= few && b >= most && c >= 0.95 && d >= 0.95) return "utf-32le";
  if (a >= 0.95 && b >= 0.95 && c >= most && d <= few) return "utf-32be";
  if (a <= few && c <= few && b >= most && d >= most) return "utf-16le";
  if (a >= most && c >= most && b <= few && d <= few) return "utf-16be";
  return undefined;
}

function decodeWide(bytes: Buffer, encoding: Wide): Decoded {
  // A TextDecoder drops the mark by itself.
  const text = encoding.startsWith("utf-16")
    ? new TextDecoder(encoding).decode(bytes)
    : decodeUtf32(bytes, encoding === "utf-32le");
  return text.includes("\0") ? BINARY : { kind: "text", text };
}

/** UTF-32, which TextDecoder does not know. */
function decodeUtf32(bytes: Buffer, littleEndian: boolean): string {
  const parts: string[] = [];
  for (let at = 0; at + 4 <= bytes.length; at += 4) {
    const code = littleEndian ? bytes.readUInt32LE(at) : bytes.readUInt32BE(at);
    if (at === 0 && code === 0xfeff) continue;
    const valid = code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
    parts.push(valid ? String.fromCodePoint(code) : "\uFFFD");
  }
  return parts.join("");
}

const ESCAPE = 0x1b;
/** Begins every change to a two-byte character set. */
const ISO_2022_ESCAPE = Buffer.from("\u001B$");

/** ISO 2022 writes Asian text in ASCII bytes behind escapes; terminal colours use escapes too and stay as they are. */
function decodeEscapes(bytes: Buffer): Decoded {
  if (bytes.includes(ISO_2022_ESCAPE)) return decodeLegacy(bytes);
  return { kind: "text", text: bytes.toString("latin1") };
}

/** What chardet can tell and TextDecoder cannot read. */
const UNREADABLE = new Set<string>(["ISO-2022-KR", "ISO-2022-CN"]);

/** Takes the likeliest encoding in which every byte means something. */
function decodeLegacy(bytes: Buffer): Decoded {
  const candidates = chardet()
    .analyse(sampleOf(bytes))
    .map(({ name }) => name);
  const best = candidates[0] ?? "windows-1252";
  if (UNREADABLE.has(best)) {
    return {
      kind: "unknown",
      reason: `text in the encoding ${best}, which cannot be read: save it as UTF-8`,
    };
  }
  // Broken UTF-8 is still UTF-8: a log that was cut in the middle of a character, say.
  for (const name of best === "UTF-8" ? [] : candidates) {
    const text = decodeExactly(bytes, name);
    if (text !== undefined) return { kind: "text", text };
  }
  return { kind: "text", text: new TextDecoder(best === "UTF-8" ? "utf-8" : "windows-1252").decode(bytes) };
}

/** Undefined where the bytes do not fit the encoding, or its name means nothing to TextDecoder. */
function decodeExactly(bytes: Buffer, encoding: string): string | undefined {
  try {
    return new TextDecoder(encoding, { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** The part of the file that tells most about its encoding: from the line of the first byte beyond ASCII on. */
function sampleOf(bytes: Buffer): Buffer {
  let first = 0;
  while (first < bytes.length && (bytes[first] as number) < 0x80 && bytes[first] !== ESCAPE) first++;
  const lineStart = bytes.lastIndexOf(0x0a, first) + 1;
  const start = Math.max(lineStart, first - SAMPLE_BYTES / 4, 0);
  return bytes.subarray(start, start + SAMPLE_BYTES);
}

/** More than one control character in a hundred bytes, white space and escapes aside: no legacy encoding looks so. */
function manyControls(bytes: Buffer): boolean {
  const look = bytes.subarray(0, LOOK_BYTES);
  let controls = 0;
  for (const byte of look) {
    if (byte < 0x20 && !(byte >= 0x08 && byte <= 0x0d) && byte !== ESCAPE) controls++;
  }
  return controls * 100 > look.length;
}

function startsWith(bytes: Buffer, mark: Buffer): boolean {
  return bytes.length >= mark.length && bytes.compare(mark, 0, mark.length, 0, mark.length) === 0;
}

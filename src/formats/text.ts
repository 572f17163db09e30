import { isAscii, isUtf8 } from "node:buffer";
import { lazyModule } from "../lib/lazy-module.ts";

const chardet = lazyModule((load) => load("chardet") as typeof import("chardet"));

/** The result of decoding bytes as text. */
export type Decoded =
  | { readonly kind: "text"; readonly text: string }
  /** Not text in any encoding; the reason for a person. */
  | { readonly kind: "binary"; readonly reason: string }
  /** Text in an unsupported encoding; the reason for a person. */
  | { readonly kind: "unknown"; readonly reason: string };

/** Bytes examined to distinguish text from binary data. */
const PROBE_BYTES = 64 * 1024;
/** Bytes for the statistics of legacy encodings, which take 0.15 ms per kilobyte. */
const SAMPLE_BYTES = 16 * 1024;

const BINARY: Decoded = {
  kind: "binary",
  reason: "binary data of an unknown kind: no text is taken from it",
};

/**
 * Decodes a whole text file. UTF-8 needs no byte order mark. UTF-16 and UTF-32 are recognised by their mark or by the
 * positions of their zero bytes, other encodings by their statistics. The mark is not part of the text. Invalid bytes become
 * U+FFFD, so the text is always well-formed.
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

/** Whether the first bytes of a file already show that `decodeText` would find no text. */
export function beginsBinary(bytes: Buffer): boolean {
  const probe = bytes.subarray(0, PROBE_BYTES);
  return probe.includes(0) && wideEncoding(probe) === undefined;
}

type Wide = "utf-16le" | "utf-16be" | "utf-32le" | "utf-32be";

const UTF8_MARK = Buffer.from([0xef, 0xbb, 0xbf]);
// UTF-32's mark starts like UTF-16's, so it is tested first.
const MARKS: readonly (readonly [Wide, Buffer])[] = [
  ["utf-32le", Buffer.from([0xff, 0xfe, 0, 0])],
  ["utf-32be", Buffer.from([0, 0, 0xfe, 0xff])],
  ["utf-16le", Buffer.from([0xff, 0xfe])],
  ["utf-16be", Buffer.from([0xfe, 0xff])],
];

/** Recognises UTF-16 and UTF-32 by mark or by zero bytes: in nearly every text, most characters are below U+0100. */
function wideEncoding(bytes: Buffer): Wide | undefined {
  const marked = MARKS.find(([, mark]) => startsWith(bytes, mark));
  if (marked !== undefined) return marked[0];

  const probe = bytes.subarray(0, PROBE_BYTES);
  const units = Math.floor(probe.length / 4);
  if (units === 0) return undefined;
  const zeros = [0, 0, 0, 0] as [number, number, number, number];
  for (let at = 0; at < units * 4; at++) if (probe[at] === 0) zeros[(at % 4) as 0 | 1 | 2 | 3]++;
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
  // TextDecoder drops the mark.
  const text = encoding.startsWith("utf-16")
    ? new TextDecoder(encoding).decode(bytes)
    : decodeUtf32(bytes, encoding === "utf-32le");
  return text.includes("\0") ? BINARY : { kind: "text", text };
}

/** Decodes UTF-32, which TextDecoder does not support. */
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
/** Starts every switch to a two-byte character set. */
const ISO_2022_ESCAPE = Buffer.from("\u001B$");

/**
 * Decodes ISO 2022, which writes Asian text in ASCII bytes after escapes. Terminal colours use escapes too and stay
 * unchanged.
 */
function decodeEscapes(bytes: Buffer): Decoded {
  if (bytes.includes(ISO_2022_ESCAPE)) return decodeLegacy(bytes);
  return { kind: "text", text: bytes.toString("latin1") };
}

/** Encodings that chardet recognises and TextDecoder cannot read. */
const UNREADABLE = new Set<string>(["ISO-2022-KR", "ISO-2022-CN"]);

/** Uses the most likely encoding in which every byte is valid. */
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
  // Broken UTF-8 is still UTF-8: for example a log that was cut in the middle of a character.
  for (const name of best === "UTF-8" ? [] : candidates) {
    const text = decodeExactly(bytes, name);
    if (text !== undefined) return { kind: "text", text };
  }
  return { kind: "text", text: new TextDecoder(best === "UTF-8" ? "utf-8" : "windows-1252").decode(bytes) };
}

/** Returns undefined if the bytes are invalid in the encoding, or TextDecoder does not know it. */
function decodeExactly(bytes: Buffer, encoding: string): string | undefined {
  try {
    return new TextDecoder(encoding, { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** The most informative part of the file: from the line of the first non-ASCII byte on. */
function sampleOf(bytes: Buffer): Buffer {
  let first = 0;
  while (first < bytes.length && (bytes[first] as number) < 0x80 && bytes[first] !== ESCAPE) first++;
  const lineStart = bytes.lastIndexOf(0x0a, first) + 1;
  const start = Math.max(lineStart, first - SAMPLE_BYTES / 4, 0);
  return bytes.subarray(start, start + SAMPLE_BYTES);
}

/**
 * Whether more than one byte in a hundred is a control character other than white space and escape. No legacy encoding
 * has so many.
 */
function manyControls(bytes: Buffer): boolean {
  const probe = bytes.subarray(0, PROBE_BYTES);
  let controls = 0;
  for (const byte of probe) {
    if (byte < 0x20 && !(byte >= 0x08 && byte <= 0x0d) && byte !== ESCAPE) controls++;
  }
  return controls * 100 > probe.length;
}

function startsWith(bytes: Buffer, mark: Buffer): boolean {
  return bytes.length >= mark.length && bytes.compare(mark, 0, mark.length, 0, mark.length) === 0;
}

import { isUtf8 } from "node:buffer";
import { createHash, hash } from "node:crypto";

/** 128 bits of a SHA-256 in 22 characters: nobody gains from a collision here, and none occurs by chance. */
export const DIGEST_CHARS = 22;

/**
 * Digest of a text as a service stores it. Services differ in how they treat line ends, white space around a text and at
 * line ends, and composed letters. The returned text must be recognised nevertheless.
 */
export function digestOf(content: string): string {
  return digestOfPlain(composed(withoutTrailingBlanks(withoutMargins(content))));
}

/** Normalises a title or description for comparison: a service may compose its letters. */
export function composed(text: string): string {
  return NOT_ASCII.test(text) ? text.normalize("NFC") : text;
}

const BLANK_AT_LINE_END = /[^\S\n]\n/;
// oxlint-disable-next-line no-control-regex -- The range is all of ASCII.
const NOT_ASCII = /[^\x00-\x7f]/;

function withoutMargins(content: string): string {
  return (content.includes("\r") ? content.replaceAll("\r\n", "\n") : content).trim();
}

function withoutTrailingBlanks(text: string): string {
  if (!BLANK_AT_LINE_END.test(text)) return text;
  return text
    .split("\n")
    .map((line) => line.trimEnd())
    .join("\n");
}

function digestOfPlain(text: string): string {
  return hash("sha256", text, "base64url").slice(0, DIGEST_CHARS);
}

/**
 * Returns the hash of a text file's bytes (SHA-256, hex) and the digest of its text. For nearly every file the text equals
 * the bytes except for white space at the end, and one run gives both: hashing is a tenth of the cost of sending a file.
 */
export function fingerprint(bytes: Buffer, text: string): { readonly hash: string; readonly digest: string } {
  const tailBytes = spaceAtEnd(bytes, text);
  if (tailBytes === undefined) return { hash: hash("sha256", bytes), digest: digestOf(text) };
  const end = bytes.length - tailBytes;
  const hasher = createHash("sha256").update(bytes.subarray(0, end));
  const digest = hasher.copy().digest("base64url").slice(0, DIGEST_CHARS);
  return { hash: hasher.update(bytes.subarray(end)).digest("hex"), digest };
}

/** Number of bytes after the text's last visible character; undefined if the digest covers bytes other than the file's. */
function spaceAtEnd(bytes: Buffer, text: string): number | undefined {
  if (text.includes("\r") || text.trimStart().length !== text.length) return undefined;
  if (!isUtf8(bytes) || bytes.toString("utf8") !== text) return undefined;
  const end = text.trimEnd();
  if (BLANK_AT_LINE_END.test(end) || (bytes.length !== text.length && composed(end) !== end))
    return undefined;
  return Buffer.byteLength(text.slice(end.length));
}

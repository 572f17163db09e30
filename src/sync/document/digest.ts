import { isUtf8 } from "node:buffer";
import { createHash, hash } from "node:crypto";

/** 128 bits of a SHA-256 in 22 characters: nobody gains by a collision here, and chance makes none. */
export const DIGEST_CHARS = 22;

/**
 * Digest of a text as a service keeps it. Services differ in what they do to line ends and to space around a text;
 * what they give back must still be recognised.
 */
export function digestOf(content: string): string {
  const plain = content.includes("\r") ? content.replaceAll("\r\n", "\n") : content;
  return hash("sha256", plain.trim(), "base64url").slice(0, DIGEST_CHARS);
}

/**
 * The hash of a text file's bytes (SHA-256, hex) and the digest of its text. Where the text is the bytes but for space
 * at its end, as of nearly every file, one run over them gives both: hashing is a tenth of what sending a file costs.
 */
export function fingerprint(bytes: Buffer, text: string): { readonly hash: string; readonly digest: string } {
  const tailBytes = spaceAtEnd(bytes, text);
  if (tailBytes === undefined) return { hash: hash("sha256", bytes), digest: digestOf(text) };
  const end = bytes.length - tailBytes;
  const hasher = createHash("sha256").update(bytes.subarray(0, end));
  const digest = hasher.copy().digest("base64url").slice(0, DIGEST_CHARS);
  return { hash: hasher.update(bytes.subarray(end)).digest("hex"), digest };
}

/** Bytes after the text's last sign; undefined where the digest is of other bytes than the file's. */
function spaceAtEnd(bytes: Buffer, text: string): number | undefined {
  if (text.includes("\r") || text.trimStart().length !== text.length) return undefined;
  if (!isUtf8(bytes) || bytes.toString("utf8") !== text) return undefined;
  return Buffer.byteLength(text.slice(text.trimEnd().length));
}

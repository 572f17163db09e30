import { htmlToMarkdown } from "../../../lib/markup/html-markdown.ts";
import { decodeText } from "../text.ts";
import type { Reading } from "./conversion.ts";
import { ConversionRefusal } from "./refusal.ts";

/** Bytes in which a page must name its encoding (HTML, "determining the character encoding"). */
const DECLARED_BYTES = 1024;

/** Reads a page of HTML: the readable part. */
export function readPage(bytes: Buffer): Reading {
  return htmlToMarkdown(decodePage(bytes));
}

/** What the page itself says of its encoding counts, unless it is valid UTF-8, which nothing else is by chance. */
function decodePage(bytes: Buffer): string {
  const decoded = decodeText(bytes);
  if (decoded.kind !== "text") throw new ConversionRefusal(decoded.reason);
  const declared = /<meta[^>]{0,200}charset\s*=\s*["']?\s*([\w-]+)/i.exec(
    bytes.subarray(0, DECLARED_BYTES).toString("latin1"),
  )?.[1];
  if (declared === undefined || /^utf-?8$/i.test(declared) || Buffer.from(decoded.text).equals(bytes)) {
    return decoded.text;
  }
  try {
    return new TextDecoder(declared, { fatal: true }).decode(bytes);
  } catch {
    return decoded.text; // no such encoding, or the page does not hold to it
  }
}

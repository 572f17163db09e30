import { htmlToMarkdown } from "../markup/html-markdown.ts";
import { decodeText } from "../text.ts";
import type { Reading } from "./conversion.ts";
import { ConversionRefusal } from "./refusal.ts";

/** The first bytes of a page, which must contain its encoding (HTML, "determining the character encoding"). */
const DECLARED_BYTES = 1024;

/** Reads the readable part of an HTML page. */
export function readPage(bytes: Buffer): Reading {
  const { title, markdown } = htmlToMarkdown(decodePage(bytes));
  return { title, text: markdown };
}

/** Decodes a page with the encoding that it declares, unless it is valid UTF-8: no other text is so by chance. */
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
    return decoded.text; // an unknown encoding, or one that the page does not follow
  }
}

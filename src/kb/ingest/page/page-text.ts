import { isUtf8 } from "node:buffer";
import { htmlToMarkdown } from "../../../formats/markup/html-markdown.ts";

/** Bytes searched for the declaration of the encoding (HTML standard, encoding sniffing algorithm). */
const META_BYTES = 1024;
/** Default encoding of a page without a declaration, as in browsers. */
const ENCODING_DEFAULT = "windows-1252";

/**
 * Returns the Markdown of a page's readable part. A byte-order mark takes precedence over `encoding`, the server's header, which
 * takes precedence over the page's own declaration. Throws `MarkupTooDeep`.
 */
export function pageText(bytes: Uint8Array, encoding: string | undefined, url: string): string {
  return htmlToMarkdown(decodePage(bytes, encoding), { url }).markdown;
}

/** Decodes a page. Invalid sequences become U+FFFD. */
export function decodePage(bytes: Uint8Array, encoding: string | undefined): string {
  const declared = markOf(bytes) ?? known(encoding) ?? known(declaredIn(bytes));
  return new TextDecoder(declared ?? (isUtf8(bytes) ? "utf-8" : ENCODING_DEFAULT)).decode(bytes);
}

/** Returns the canonical name of an encoding; undefined for an unknown label. */
export function known(label: string | undefined): string | undefined {
  if (label === undefined) return undefined;
  try {
    return new TextDecoder(label).encoding;
  } catch (error) {
    if (error instanceof RangeError) return undefined; // unknown label
    throw error;
  }
}

/**
 * Whether bytes without a declared type are an HTML page: they start like one, after spaces and comments. Skips these in a loop,
 * because a regular expression that repeats them backtracks exponentially.
 */
export function looksLikePage(head: Uint8Array): boolean {
  let rest = new TextDecoder("latin1").decode(head).replace(/^ï»¿/, "").toLowerCase();
  for (;;) {
    rest = rest.trimStart();
    const close = rest.startsWith("<!--") ? "-->" : rest.startsWith("<?xml") ? ">" : undefined;
    if (close === undefined) return /^<(?:!doctype\s+html|html|head|body)[\s>]/.test(rest);
    const end = rest.indexOf(close, "<!--".length);
    if (end === -1) return false;
    rest = rest.slice(end + close.length);
  }
}

function markOf(bytes: Uint8Array): string | undefined {
  const [first, second, third] = bytes;
  if (first === 0xef && second === 0xbb && third === 0xbf) return "utf-8";
  if (first === 0xff && second === 0xfe) return "utf-16le";
  if (first === 0xfe && second === 0xff) return "utf-16be";
  return undefined;
}

function declaredIn(bytes: Uint8Array): string | undefined {
  const head = new TextDecoder("latin1").decode(bytes.subarray(0, META_BYTES));
  const label = /<meta[^>]+charset\s*=\s*["']?\s*([A-Za-z0-9_:.-]+)/i.exec(head)?.[1];
  // A declaration that is readable as ASCII cannot be in UTF-16.
  return label !== undefined && /^utf-?16/i.test(label) ? "utf-8" : label;
}

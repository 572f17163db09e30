import { isUtf8 } from "node:buffer";
import { htmlToMarkdown } from "../../../lib/markup/html-markdown.ts";

/** How far into a page the declaration of its encoding stands (HTML standard, the encoding sniffing algorithm). */
const META_BYTES = 1024;
/** What a page without any declaration is in, as browsers have it. */
const ENCODING_DEFAULT = "windows-1252";

/**
 * The Markdown of a page's readable part. `encoding` is what the server said; a byte-order mark goes before it, what the
 * page itself says comes after it. Throws `MarkupTooDeep`.
 */
export function pageText(bytes: Uint8Array, encoding: string | undefined, url: string): string {
  return htmlToMarkdown(decodePage(bytes, encoding), { url }).markdown;
}

/** The text of a page in its encoding; what is broken in it becomes U+FFFD. */
export function decodePage(bytes: Uint8Array, encoding: string | undefined): string {
  const declared = markOf(bytes) ?? known(encoding) ?? known(declaredIn(bytes));
  return new TextDecoder(declared ?? (isUtf8(bytes) ? "utf-8" : ENCODING_DEFAULT)).decode(bytes);
}

/** The encoding's own name; undefined for one that nobody knows. */
export function known(label: string | undefined): string | undefined {
  if (label === undefined) return undefined;
  try {
    return new TextDecoder(label).encoding;
  } catch (error) {
    if (error instanceof RangeError) return undefined; // what it throws at an unknown label
    throw error;
  }
}

/**
 * Whether bytes that nobody declared to be anything are a page: it begins as one, behind spaces and comments. These are
 * passed one by one: a pattern that repeats them tries every way to part them, which takes for ever.
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
  // Who could read these letters as ASCII has no UTF-16 before them.
  return label !== undefined && /^utf-?16/i.test(label) ? "utf-8" : label;
}

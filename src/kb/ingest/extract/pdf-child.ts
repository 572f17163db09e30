import { readFile } from "node:fs/promises";
import { getDocumentProxy } from "unpdf";
import { codeOf, messageOf } from "../../../lib/failure.ts";
import { pageText } from "./page-text.ts";
import type { TextItem } from "./page-text.ts";

/** What the parent asks of the child: one document at a time. */
export interface PdfRequest {
  readonly path: string;
  readonly charsMax: number;
}

/** Why a document gave no text; the parent makes the error of it. */
export type PdfFailure =
  | "encrypted_pdf"
  | "damaged_pdf"
  | "extraction_memory"
  | "extraction_failed"
  | "text_too_large";

/** What the child answers: `ready` once, then for each document pages in order and one `done` or `failed`. */
export type PdfReply =
  | { readonly kind: "ready" }
  | { readonly kind: "pages"; readonly texts: readonly string[] }
  | { readonly kind: "done"; readonly pages: number; readonly rssBytes: number; readonly cpuMs: number }
  | { readonly kind: "failed"; readonly code: PdfFailure; readonly detail: string };

/** Pages are sent together up to this size: one message a page is slow, one a document is a second copy of all. */
const MESSAGE_CHARS = 256 * 1024;

/** What V8 and PDF.js say when an allocation is refused. */
const MEMORY_WORDS = /allocation failed|out of memory|Invalid (typed )?array( buffer)? length/i;

class Refusal extends Error {
  readonly code: PdfFailure;
  constructor(code: PdfFailure, detail: string) {
    super(detail);
    this.code = code;
  }
}

/** PDF.js carries on after most errors inside a page and only warns: a refused allocation would lose text unseen. */
let memoryRefused = false;
const watchWarnings = (...words: unknown[]): void => {
  memoryRefused ||= words.some((word) => MEMORY_WORDS.test(String(word)));
};
// oxlint-disable-next-line no-console -- PDF.js knows no other way to tell
Object.assign(console, { log: watchWarnings, warn: watchWarnings, info: watchWarnings });

process.on("message", (request: PdfRequest) => {
  void extract(request);
});
reply({ kind: "ready" });

async function extract(request: PdfRequest): Promise<void> {
  memoryRefused = false;
  try {
    const pages = await sendPages(request);
    if (memoryRefused) throw new Refusal("extraction_memory", "an allocation was refused");
    const { user, system } = process.cpuUsage();
    reply({ kind: "done", pages, rssBytes: process.memoryUsage.rss(), cpuMs: (user + system) / 1000 });
  } catch (error) {
    reply({ kind: "failed", code: codeFor(error), detail: messageOf(error) });
  }
}

async function sendPages({ path, charsMax }: PdfRequest): Promise<number> {
  const document = await getDocumentProxy(new Uint8Array(await readFile(path)), { verbosity: 1 });
  try {
    let texts: string[] = [];
    let unsent = 0;
    let chars = 0;
    for (let number = 1; number <= document.numPages; number++) {
      const page = await document.getPage(number);
      const text = await readPage(page.streamTextContent(), charsMax - chars);
      page.cleanup();
      chars += text.length;
      unsent += text.length + 1; // so that a million empty pages are not one message
      texts.push(text);
      if (unsent >= MESSAGE_CHARS) {
        reply({ kind: "pages", texts });
        texts = [];
        unsent = 0;
      }
    }
    reply({ kind: "pages", texts });
    return document.numPages;
  } finally {
    await document.loadingTask.destroy();
  }
}

async function readPage(
  stream: ReadableStream<{ items: readonly object[] }>,
  charsMax: number,
): Promise<string> {
  const items: TextItem[] = [];
  let chars = 0;
  for await (const { items: found } of stream) {
    for (const item of found) {
      if (!("str" in item)) continue; // a marked-content border
      const textItem = item as TextItem; // PDF.js's own type, of which this is a part
      chars += textItem.str.length;
      items.push(textItem);
    }
    if (chars > charsMax) throw new Refusal("text_too_large", "too many characters");
  }
  return pageText(items);
}

function codeFor(error: unknown): PdfFailure {
  if (error instanceof Refusal) return error.code;
  if (memoryRefused || MEMORY_WORDS.test(messageOf(error))) return "extraction_memory";
  if (error instanceof Error && error.name === "PasswordException") return "encrypted_pdf";
  return codeOf(error) === undefined ? "damaged_pdf" : "extraction_failed"; // a code: the file could not be read
}

function reply(message: PdfReply): void {
  process.send?.(message);
}

import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { getDocumentProxy } from "unpdf";
import { answerRequests, CappedRefusal, isOutOfMemory } from "../../../lib/capped/child.ts";
import { foreignKind } from "../../../lib/capped/foreign.ts";
import { pdfPagesMax } from "./pdf-budget.ts";
import { pageText } from "./page-text.ts";
import type { TextItem } from "./page-text.ts";

/** What the parent asks of the child: one document at a time. */
export interface PdfRequest {
  readonly path: string;
  /** Size of the file, which bounds the pages that it may say to have. */
  readonly bytes: number;
  readonly charsMax: number;
}

/** Why a document gave no text; the parent makes the error of it. */
export type PdfFailure =
  | "encrypted_pdf"
  | "damaged_pdf"
  | "too_many_pages"
  | "memory"
  | "unable"
  | "text_too_large";

/** Texts of pages, in order: one message a page is slow, one a document is a second copy of all. */
export type PdfPart = readonly string[];

/** Pages are sent together up to this size. */
const MESSAGE_CHARS = 256 * 1024;

/**
 * Tables that fonts of Chinese, Japanese and Korean texts refer to without holding them: a page set in one of these has
 * no text without them.
 */
const CMAPS = fileURLToPath(new URL("cmaps/", import.meta.resolve("pdfjs-dist/package.json")));

/** PDF.js carries on after most errors inside a page and only warns: a refused allocation would lose text unseen. */
let memoryRefused = false;
const watchWarnings = (...words: unknown[]): void => {
  memoryRefused ||= words.some((word) => isOutOfMemory(String(word)));
};
// oxlint-disable-next-line no-console -- PDF.js knows no other way to tell
Object.assign(console, { log: watchWarnings, warn: watchWarnings, info: watchWarnings });

answerRequests<PdfRequest, PdfPart, PdfFailure>(async (request, give) => {
  memoryRefused = false;
  await sendPages(request, give);
  if (memoryRefused) throw new CappedRefusal("memory", "an allocation was refused");
}, codeFor);

async function sendPages(
  { path, bytes, charsMax }: PdfRequest,
  give: (part: PdfPart) => void,
): Promise<void> {
  const document = await getDocumentProxy(new Uint8Array(await readFile(path)), {
    verbosity: 1,
    cMapUrl: CMAPS,
    cMapPacked: true,
  });
  try {
    if (document.numPages > pdfPagesMax(bytes))
      throw new CappedRefusal<PdfFailure>("too_many_pages", `${document.numPages} pages`);
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
        give(texts);
        texts = [];
        unsent = 0;
      }
    }
    give(texts);
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
    if (chars > charsMax) throw new CappedRefusal("text_too_large", "too many characters");
  }
  return pageText(items);
}

function codeFor(error: unknown): PdfFailure {
  // Thrown here alone, with these codes.
  if (error instanceof CappedRefusal) return error.code as PdfFailure;
  if (error instanceof Error && error.name === "PasswordException") return "encrypted_pdf";
  const kind = foreignKind(error);
  if (memoryRefused || kind === "memory") return "memory";
  return kind === "machine" ? "unable" : "damaged_pdf";
}

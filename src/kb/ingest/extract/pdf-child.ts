import { readFile } from "node:fs/promises";
import { getDocumentProxy } from "unpdf";
import { answerRequests, CappedRefusal, isOutOfMemory } from "../../../lib/capped/child.ts";
import { foreignKind } from "../../../lib/capped/foreign.ts";
import { METADATA_STRING_CHARS_MAX } from "../../../wire/metadata.ts";
import { oneLine } from "../../../lib/one-line.ts";
import { dataFolder } from "./data-folder.ts";
import { pdfPagesMax } from "./pdf-budget.ts";
import { pageText } from "./page-text.ts";
import type { TextItem } from "./page-text.ts";

/** A request of the parent process: one document at a time. */
export interface PdfRequest {
  readonly path: string;
  /** Size of the PDF, which limits the number of pages. */
  readonly bytes: number;
  readonly charsMax: number;
}

/** Why a document yields no text. The parent process turns it into an error. */
export type PdfFailure =
  | "encrypted_pdf"
  | "damaged_pdf"
  | "too_many_pages"
  | "memory"
  | "unable"
  | "text_too_large";

/** Some pages, in order. One message for each page would be slow; one for the document would be a second copy. */
export interface PdfPart {
  readonly texts: readonly string[];
  /** Who wrote the document, if it says so. In the first part. */
  readonly author?: string;
}

/** Characters of the pages in one message. */
const MESSAGE_CHARS = 256 * 1024;

/**
 * Tables that fonts of Chinese, Japanese and Korean texts refer to without including them. A page in such a font has no text without
 * its table.
 */
const CMAPS = `${dataFolder("cmaps")}/`;

/** Set by warnings: PDF.js continues after most errors in a page, so a refused allocation would silently lose text. */
let memoryRefused = false;
const watchWarnings = (...words: unknown[]): void => {
  memoryRefused ||= words.some((word) => isOutOfMemory(String(word)));
};
// oxlint-disable-next-line no-console -- PDF.js has no other way to report
Object.assign(console, { log: watchWarnings, warn: watchWarnings, info: watchWarnings });

answerRequests<PdfRequest, PdfPart, PdfFailure>(async (request, give) => {
  memoryRefused = false;
  await sendPages(request, give);
  if (memoryRefused) throw new CappedRefusal("memory", "an allocation was refused");
}, codeFor);

async function sendPages(request: PdfRequest, give: (part: PdfPart) => void): Promise<void> {
  const { path, bytes, charsMax } = request;
  const document = await getDocumentProxy(new Uint8Array(await readFile(path)), {
    verbosity: 1,
    cMapUrl: CMAPS,
    cMapPacked: true,
  });
  try {
    if (document.numPages > pdfPagesMax(bytes))
      throw new CappedRefusal<PdfFailure>("too_many_pages", `${document.numPages} pages`);
    give({ texts: [], ...authorOf(await document.getMetadata()) });
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
        give({ texts });
        texts = [];
        unsent = 0;
      }
    }
    give({ texts });
  } finally {
    await document.loadingTask.destroy();
  }
}

/** Returns the author that a PDF states: in its information, or as its creators in XMP. */
function authorOf({ info, metadata }: PdfMetadata): Pick<PdfPart, "author"> {
  const stated = [
    Object.entries(info).find(([name]) => name === "Author")?.[1],
    metadata?.get("dc:creator"),
  ].flat();
  const names = stated.filter((name) => typeof name === "string").map(oneLine);
  const author = names.find((name) => name !== "");
  return author === undefined ? {} : { author: author.slice(0, METADATA_STRING_CHARS_MAX).toWellFormed() };
}

/** The part of PDF.js's answer that is read. Its type leaves the information open. */
interface PdfMetadata {
  readonly info: object;
  readonly metadata: { get(name: string): unknown } | null;
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
  // Thrown only in this file, with these codes.
  if (error instanceof CappedRefusal) return error.code as PdfFailure;
  if (error instanceof Error && error.name === "PasswordException") return "encrypted_pdf";
  const kind = foreignKind(error);
  if (memoryRefused || kind === "memory") return "memory";
  return kind === "machine" ? "unable" : "damaged_pdf";
}

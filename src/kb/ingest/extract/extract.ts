import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import type { Lane } from "../../../lib/capped/pool.ts";
import { KbsyncError } from "../../../lib/failure.ts";
import { joinLocated, locatedAt, type LocatedText } from "../../../formats/markup/located-text.ts";
import type { UserMetadata } from "../../../wire/metadata.ts";
import { openPageReader, type PageReader } from "../page/page-reader.ts";
import { looksLikePage } from "../page/page-text.ts";
import type { MediaType } from "./media-type.ts";
import {
  failureOf,
  openOcr,
  type Ocr,
  type OcrOptions,
  type PageMemory,
  type PageText,
  type UnreadPage,
} from "./ocr.ts";
import { openPdfPool, type PdfPool } from "./pdf-pool.ts";
import { openStructuredReader } from "./structured-reader.ts";
import { readHead, readTextFile, textTooLarge } from "./text-file.ts";
import type { TextForm } from "./text-form.ts";
import { scrapsWords, unreadWords } from "./unread-words.ts";

/** A file on disk with its detected media type. */
export interface ExtractableFile {
  readonly path: string;
  readonly mediaType: MediaType;
  /** Declared form of a text file. Default: undeclared. */
  readonly form?: TextForm;
  /** Default: nobody in particular, who does not wait. */
  readonly requester?: Requester | undefined;
}

/** The tenant of a document. */
export interface Requester {
  /** Account and owner. The time of child processes is shared equally among tenants. Default: none. */
  readonly tenant?: readonly string[] | undefined;
  /** Whether a client waits for the document. */
  readonly lane: Lane;
  /** Rank among the documents of the tenant: the highest are read first (`FairLine`). Default 0. */
  readonly rank?: number | undefined;
  /** Stops the work: it rejects with the reason of the signal. Default: nothing does. */
  readonly signal?: AbortSignal | undefined;
  /** Wraps the waits of the document. Default: plain wait. */
  readonly whileWaiting?: WhileWaiting | undefined;
  /** Returns the memory of a file's pages, by its SHA-256, which another try of the document has too. Default: nothing is kept. */
  readonly memoryOf?: ((sha256: string) => Promise<PageMemory>) | undefined;
  /** Takes the text of a PDF's other pages while those without a text layer are still being read. Default: nothing does. */
  readonly onPart?: ((part: PartlyRead) => Promise<void>) | undefined;
}

/** A PDF of which some pages are still being read. */
export interface PartlyRead {
  readonly fileMetadata: UserMetadata;
  /** The text of each page; empty for those being read, which may be all. */
  readonly texts: readonly string[];
  /** Numbers of the pages being read. */
  readonly reading: readonly number[];
}

/**
 * Runs `work`, in which a document waits for a child process and is read by it, possibly for hours; the caller may process other
 * documents meanwhile. `heldChars` is the number of the document's characters in memory until then.
 */
export type WhileWaiting = <T>(work: () => Promise<T>, heldChars: number, kind?: WaitKind) => Promise<T>;

/**
 * What a document waits for. `read`: a process that reads it within seconds, or its fetch; `file`: text recognition; `text`: a
 * model. Those that wait for one never delay those that wait for another. Default: `file` without characters, else `text`.
 */
export type WaitKind = "read" | "file" | "text";

/** The text of a file, well-formed UTF-16 without NUL characters. */
export interface Extraction extends LocatedText {
  /**
   * Pages are joined by a blank line. A text file is verbatim without its byte-order mark, an HTML page the readable part as
   * Markdown, a declared table or JSON the output of `structuredText`.
   */
  readonly text: string;
  /** The pages of a PDF, or of an image with several; the rows of a declared table. */
  readonly locations?: LocatedText["locations"];
  /** The file's own metadata: of a PDF the number of `pages`, and the `author` if it names one. Default: nothing. */
  readonly fileMetadata?: UserMetadata;
  /** Says which parts of the document may be missing from the text, and why. */
  readonly warning?: string;
}

/** Bounds of the extraction; each has a default. */
export interface ExtractorOptions {
  /** Maximum characters of a document's text. Default 33 million, about 10,000 pages. */
  readonly charsMax?: number;
  /** Maximum concurrent PDFs. Default 2. */
  readonly processes?: number;
  /** Memory for one PDF in addition to Node's own. Default 512 MB. */
  readonly memoryMb?: number;
  /** Processor time of one PDF, however large (`pdfCpuMs`). Default 5 min. */
  readonly cpuMs?: number;
  /** How long an idle process waits for the next PDF. Default 10 s. */
  readonly idleMs?: number;
  /** Options of text recognition. */
  readonly ocr?: OcrOptions;
}

/** Turns files into text. Reads PDFs, images and HTML pages in child processes with capped memory and time. */
export interface Extractor {
  /**
   * Rejects with `unsupported_media_type` (text that is none), `text_too_large`; for PDFs `encrypted_pdf`, `damaged_pdf`,
   * `pdf_without_text`, `too_many_pages`; for images `image_too_large`, `damaged_image`, `image_without_text`,
   * `too_many_pages`; for HTML `page_without_text`, `page_unreadable`; for PDFs and images `extraction_memory`,
   * `extraction_timeout`, `extraction_crashed` (the child process ends over the file). Retryable are `extraction_failed` (the file
   * cannot be opened or no child process started) and `extractor_busy`. Rejects also with the signal's reason.
   */
  extractText(file: ExtractableFile): Promise<Extraction>;
  /** Recognises text in images, with its position; see `Ocr`. */
  readonly ocr: Pick<Ocr, "pagesMax" | "readImage">;
  /** Terminates the child processes. PDFs in flight fail. */
  close(): void;
}

/** At least the size of the largest text file that can be uploaded. */
const CHARS_MAX = 32 * 1024 * 1024;

/** Bytes that suffice to recognise an HTML page. */
const PAGE_HEAD_BYTES = 1024;

const justWait: WhileWaiting = (work) => work();

const NOBODY: Requester = { lane: "backlog" };

/**
 * Opens an extractor. The first file that needs a child process starts it; child processes never keep this process alive. Throws
 * `ocr_data_missing` like `openOcr`.
 */
export function openExtractor(options: ExtractorOptions = {}): Extractor {
  const charsMax = options.charsMax ?? CHARS_MAX;
  const pool = openPdfPool({
    processes: options.processes ?? 2,
    memoryMb: options.memoryMb ?? 512,
    // No account waits for the documents of another to finish.
    guests: 1,
    cpuMs: options.cpuMs ?? 300_000,
    idleMs: options.idleMs ?? 10_000,
  });

  const readers = { pool, webPages: openPageReader(), ocr: openOcr(options.ocr), charsMax };
  const structured = openStructuredReader();
  const once = shareReads();

  return {
    extractText: async (file) => {
      const { path, mediaType, form = "undeclared" } = file;
      const { signal } = file.requester ?? {};
      signal?.throwIfAborted();
      // Work that its caller may abort, or of which it writes a part, is not shared: its errors are the caller's own.
      const isShared = signal === undefined && file.requester?.onPart === undefined;
      const share: typeof once = isShared ? once : (_path, extract) => extract();
      switch (mediaType) {
        case "text/plain": {
          if (await isPage(path, form)) return await extractPage(file, readers);
          const text = await readTextFile(path, charsMax, signal);
          return await structured.layOut(text, form, file.requester?.tenant);
        }
        case "application/pdf":
          return await share(path, () => extractPdf(file, readers));
        case "image/png":
        case "image/jpeg":
        case "image/webp":
        case "image/gif":
        case "image/bmp":
        case "image/tiff":
          return await share(path, () => extractImage(file, readers));
      }
    },
    ocr: readers.ocr,
    close: () => {
      pool.close();
      readers.webPages.close();
      structured.close();
      readers.ocr.close();
    },
  };
}

/** The readers in child processes, and the bound on their text. */
interface Readers {
  readonly pool: PdfPool;
  readonly webPages: PageReader;
  readonly ocr: Ocr;
  readonly charsMax: number;
}

/** Shares the reads in flight of one path: requests for the same upload come again, as after a client timeout. */
function shareReads() {
  const inFlight = new Map<string, Promise<Extraction>>();
  return async (path: string, extract: () => Promise<Extraction>): Promise<Extraction> => {
    const running = inFlight.get(path);
    if (running !== undefined) return await running;
    const mine = extract().finally(() => inFlight.delete(path));
    inFlight.set(path, mine);
    return await mine;
  };
}

/** Reads the text layer of a PDF, and recognises the text of pages without one. */
async function extractPdf(
  { path, requester = NOBODY }: ExtractableFile,
  { pool, ocr, charsMax }: Readers,
): Promise<Extraction> {
  const { tenant, lane, rank, signal, whileWaiting = justWait, onPart } = requester;
  const ask = { signal, tenant, lane, rank };
  const pdf = await whileWaiting(() => pool.extract({ path, charsMax }, ask), 0, "read");
  const texts = [...pdf.texts];
  const fileMetadata = { ...(pdf.author !== undefined && { author: pdf.author }), pages: texts.length };
  const pictures = texts.flatMap((text, at) => (text === "" ? [at + 1] : []));
  let unread: readonly UnreadPage[] = [];
  let scraps: readonly number[] = [];
  if (pictures.length > 0 && ocr.pagesMax > 0) {
    const memory = await memoryFor(path, requester);
    const reading = pictures.slice(0, ocr.pagesMax).filter((page) => memory?.get(page) === undefined);
    const known = pictures.flatMap((page) => memory?.get(page) ?? []);
    addPages(
      texts,
      known.flatMap((end) => ("read" in end ? [end.read] : [])),
    );
    const heldChars = texts.reduce((sum, { length }) => sum + length, 0);
    if (reading.length > 0) await onPart?.({ texts: [...texts], reading, fileMetadata });
    const read = await whileWaiting(
      () => ocr.readPages(path, pictures, { ...ask, memory }),
      heldChars,
      "file",
    );
    unread = read.unread;
    scraps = scrapPages(read.pages);
    addPages(texts, read.pages);
  }
  const { text, locations } = bounded(joinPages(texts), charsMax, path);
  const words = `${pictures.length} pages have no text layer`;
  const warning = warningOf(scraps, unreadWords(unread, { count: pictures.length, words }));
  if (text !== "") return { text, locations, fileMetadata, ...warning };
  const failure = failureOf({ unread });
  if (failure !== undefined) throw failure;
  if (scraps.length > 0) return { text, fileMetadata, ...warning };
  const examined = unread.length === 0 ? "its pictures" : `${pictures.length - unread.length} of them`;
  const recognised = ocr.pagesMax > 0 ? `, and none was recognised in ${examined}` : "";
  throw new KbsyncError(
    `the PDF has no text on its ${pageCount(texts.length)}: it holds images only, or nothing${recognised}`,
    {
      code: "pdf_without_text",
      subject: path,
      hint:
        ocr.pagesMax > 0
          ? "send a scan of 300 dots an inch, or a PDF with a text layer"
          : "recognising text (OCR) is switched off here; send a PDF with a text layer",
    },
  );
}

async function extractImage(
  { path, mediaType, requester = NOBODY }: ExtractableFile,
  { ocr, charsMax }: Readers,
): Promise<Extraction> {
  const { tenant, lane, rank, signal, whileWaiting = justWait } = requester;
  if (ocr.pagesMax === 0) {
    throw new KbsyncError("text in images is not recognised by this service", {
      code: "image_without_text",
      subject: path,
      hint: "recognising text (OCR) is switched off here; send the text as content",
    });
  }
  const memory = await memoryFor(path, requester);
  const ask = { signal, tenant, lane, rank, memory };
  const read = await whileWaiting(() => ocr.readImageText(path, mediaType, ask), 0, "file");
  const count = read.pages.length + read.unread.length;
  const texts = Array.from({ length: count }, () => "");
  addPages(texts, read.pages);
  const { text, locations } = bounded(joinPages(texts), charsMax, path);
  const scraps = scrapPages(read.pages);
  const warning = warningOf(scraps, unreadWords(read.unread, { count, words: `it has ${count} pages` }));
  if (text !== "") return { text, ...(count > 1 && { locations }), ...warning };
  const failure = failureOf(read);
  if (failure !== undefined) throw failure;
  if (scraps.length > 0) return { text, ...warning };
  throw new KbsyncError("no text was recognised in the image", {
    code: "image_without_text",
    subject: path,
    hint: "text needs some twenty pixels of height; kb.ocr.languages names the languages that are recognised",
  });
}

async function extractPage(
  { path, requester: { tenant, lane, rank, signal, whileWaiting = justWait } = NOBODY }: ExtractableFile,
  { webPages, charsMax }: Readers,
): Promise<Extraction> {
  const page = { path, encoding: undefined, url: "" };
  const text = await whileWaiting(() => webPages.read(page, { tenant, lane, rank, signal }), 0, "read");
  if (text !== "") return bounded({ text }, charsMax, path);
  throw new KbsyncError("there is no text in the page", {
    code: "page_without_text",
    subject: path,
    hint: "scripts may make it, and none are run: save the page as it is shown and send that",
  });
}

/** Joins the texts of all pages, of which some may be empty. */
export function joinPages(texts: readonly string[]): LocatedText {
  return joinLocated(texts.map((text, at) => locatedAt(text, { page: at + 1 })));
}

/** Sets the recognised texts of pages. */
function addPages(texts: string[], pages: readonly PageText[]): void {
  for (const { page, text } of pages) texts[page - 1] = text;
}

/** Returns the numbers of pages of which only scraps were recognised. */
function scrapPages(pages: readonly PageText[]): readonly number[] {
  return pages.filter(({ isScraps }) => isScraps).map(({ page }) => page);
}

async function memoryFor(path: string, { memoryOf }: Requester): Promise<PageMemory | undefined> {
  if (memoryOf === undefined) return undefined;
  const digest = createHash("sha256");
  for await (const bytes of createReadStream(path)) digest.update(bytes as Buffer); // no encoding is set
  return await memoryOf(digest.digest("base64url"));
}

function warningOf(scraps: readonly number[], unread: string | undefined): { readonly warning?: string } {
  const sentences = [scrapsWords(scraps), unread].filter((one) => one !== undefined);
  return sentences.length === 0 ? {} : { warning: sentences.join(" ") };
}

/** Whether a text file is an HTML page: declared or undeclared, and its bytes agree, because many `.html` files are templates. */
async function isPage(path: string, form: TextForm): Promise<boolean> {
  if (form !== "page" && form !== "undeclared") return false;
  return looksLikePage(await readHead(path, PAGE_HEAD_BYTES));
}

function bounded<T extends Pick<Extraction, "text">>(read: T, charsMax: number, subject: string): T {
  if (read.text.length <= charsMax) return read;
  throw textTooLarge(charsMax, subject);
}

function pageCount(pages: number): string {
  return pages === 1 ? "only page" : `${pages} pages`;
}

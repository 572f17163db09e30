import { KbsyncError } from "../../../lib/failure.ts";
import { openPageReader } from "../page/page-reader.ts";
import { looksLikePage } from "../page/page-text.ts";
import type { MediaType } from "./media-type.ts";
import { holdsScraps, holdsText, ocrText, type OcrPage } from "./ocr-layout.ts";
import { failureOf, openOcr, type Ocr, type OcrOptions, type UnreadPage } from "./ocr.ts";
import { openPdfPool } from "./pdf-pool.ts";
import { openStructuredReader } from "./structured-reader.ts";
import { decodeTextFile, readHead } from "./text-file.ts";
import type { TextForm } from "./text-form.ts";
import { scrapsWords, unreadWords } from "./unread-words.ts";

/** A file on disk and what `detectMediaType` found it to be. */
export interface ExtractableFile {
  readonly path: string;
  readonly mediaType: MediaType;
  /** How text is read, by what is declared of it. Default: nothing is declared. */
  readonly form?: TextForm;
  readonly behalf?: Behalf | undefined;
}

/** For whom a document is read. */
export interface Behalf {
  /** Account and owner, among whom the time of processes is shared equally. Default: nobody's. */
  readonly tenant?: readonly string[] | undefined;
  /** Runs what the document waits in. Default: as part of the rest. */
  readonly whileWaiting?: WhileWaiting | undefined;
}

/**
 * Runs `work`, in which a document waits for a process that reads documents or is read by it, mostly the former and perhaps
 * for hours: its caller may do others meanwhile. `heldChars`: those of the document's text that are in memory until then.
 */
export type WhileWaiting = <T>(work: () => Promise<T>, heldChars: number) => Promise<T>;

/** The text of a file, well-formed UTF-16 without NUL characters. */
export interface Extraction {
  /**
   * Pages are joined by a blank line. Text is as it stands in the file, without the byte-order mark; of a page of HTML
   * the readable part as Markdown, of a declared table or JSON what `structuredText` makes of it.
   */
  readonly text: string;
  /** Number of pages; of a PDF or image only. */
  readonly pages?: number;
  /** What of the document the text does not hold though it may be there, and why, in a sentence for a person. */
  readonly warning?: string;
}

/** Bounds of the extraction; each has a default. */
export interface ExtractorOptions {
  /** Most characters of a document's text. Default 33 million, some 10,000 pages. */
  readonly charsMax?: number;
  /** Most PDFs read at once. Default 2. */
  readonly processes?: number;
  /** Memory for reading one PDF, beyond what Node takes. Default 512 MB. */
  readonly memoryMb?: number;
  /** Time for reading one PDF, of which it has processor time by its size (`pdfCpuMs`). Default 60 s. */
  readonly timeoutMs?: number;
  /** How long a process waits for a next PDF before it ends. Default 10 s. */
  readonly idleMs?: number;
  /** How text in pictures is recognised. */
  readonly ocr?: OcrOptions;
}

/** Turns files into text. PDFs, pictures and pages of HTML are read in child processes with capped memory and time. */
export interface Extractor {
  /**
   * Rejects with `unsupported_media_type` (text that is none), `text_too_large`; for PDFs `encrypted_pdf`, `damaged_pdf`,
   * `pdf_without_text`, `too_many_pages`; for images `image_too_large`, `damaged_image`, `image_without_text`,
   * `too_many_pages`; for HTML `page_without_text`, `page_unreadable`; for PDFs and images `extraction_memory`,
   * `extraction_timeout`, `extraction_crashed` (the child process ends over the file); with `extraction_failed`, which is
   * retryable, where the file cannot be opened or no child process started, and with the signal's reason.
   */
  extractText(file: ExtractableFile, signal?: AbortSignal): Promise<Extraction>;
  /** What is recognised in an image, with its places; see `Ocr`. */
  readonly ocr: Pick<Ocr, "pagesMax" | "readImage">;
  /** Ends the child processes; PDFs under way fail. */
  close(): void;
}

/** No smaller than the largest text file that can be uploaded. */
const CHARS_MAX = 32 * 1024 * 1024;

/** As much of a text as tells whether it is a page of HTML. */
const PAGE_HEAD_BYTES = 1024;

/** What stands between two pages: the boundary at which every chunker likes best to cut. */
const PAGE_BREAK = "\n\n";

const justWait: WhileWaiting = (work) => work();

/**
 * Makes an extractor. It starts no process before the first file that needs one, and never keeps this process alive by
 * itself. Throws `ocr_data_missing` as `openOcr` does.
 */
export function openExtractor(options: ExtractorOptions = {}): Extractor {
  const charsMax = options.charsMax ?? CHARS_MAX;
  const pool = openPdfPool({
    processes: options.processes ?? 2,
    memoryMb: options.memoryMb ?? 512,
    // So that nobody waits for the end of another account's documents.
    guests: 1,
    timeoutMs: options.timeoutMs ?? 60_000,
    idleMs: options.idleMs ?? 10_000,
  });

  const pages = openPageReader();
  const structured = openStructuredReader();
  const ocr = openOcr(options.ocr);

  const extractPdf = async (
    path: string,
    { tenant, whileWaiting = justWait }: Behalf,
    signal: AbortSignal | undefined,
  ): Promise<Extraction> => {
    const ask = { signal, tenant };
    const texts = [...(await whileWaiting(() => pool.extract({ path, charsMax }, ask), 0))];
    const pictures = texts.flatMap((text, at) => (text === "" ? [at + 1] : []));
    let unread: readonly UnreadPage[] = [];
    let scraps: readonly number[] = [];
    if (pictures.length > 0 && ocr.pagesMax > 0) {
      const heldChars = texts.reduce((sum, { length }) => sum + length, 0);
      const read = await whileWaiting(() => ocr.readPages(path, pictures, ask), heldChars);
      unread = read.unread;
      scraps = scrapPages(read.pages);
      for (const page of read.pages) {
        if (holdsText(page.lines)) texts[page.page - 1] = ocrText(page);
      }
    }
    const text = bounded(texts.filter((page) => page !== "").join(PAGE_BREAK), charsMax, path);
    const words = `${pictures.length} pages have no text layer`;
    const warning = warningOf(scraps, unreadWords(unread, { count: pictures.length, words }));
    if (text !== "") return { text, pages: texts.length, ...warning };
    const failure = failureOf({ unread });
    if (failure !== undefined) throw failure;
    if (scraps.length > 0) return { text, pages: texts.length, ...warning };
    const looked = unread.length === 0 ? "its pictures" : `${pictures.length - unread.length} of them`;
    const sought = ocr.pagesMax > 0 ? `, and none was recognised in ${looked}` : "";
    throw new KbsyncError(
      `the PDF has no text on its ${pageCount(texts.length)}: it holds images only, or nothing${sought}`,
      {
        code: "pdf_without_text",
        subject: path,
        hint:
          ocr.pagesMax > 0
            ? "send a scan of 300 dots an inch, or a PDF with a text layer"
            : "recognising text (OCR) is switched off here (kb.ocr.pagesMax is 0); send a PDF with a text layer",
      },
    );
  };

  const extractImage = async (
    path: string,
    mediaType: MediaType,
    { tenant, whileWaiting = justWait }: Behalf,
    signal: AbortSignal | undefined,
  ): Promise<Extraction> => {
    if (ocr.pagesMax === 0) {
      throw new KbsyncError("text in images is not recognised by this service", {
        code: "image_without_text",
        subject: path,
        hint: "recognising text (OCR) is switched off here (kb.ocr.pagesMax is 0); send the text as content",
      });
    }
    const read = await whileWaiting(() => ocr.readImage(path, mediaType, { signal, tenant }), 0);
    const texts = read.pages.filter(({ lines }) => holdsText(lines)).map(ocrText);
    const count = read.pages.length + read.unread.length;
    const scraps = scrapPages(read.pages);
    const warning = warningOf(scraps, unreadWords(read.unread, { count, words: `it has ${count} pages` }));
    if (texts.length > 0) {
      const text = bounded(texts.join(PAGE_BREAK), charsMax, path);
      return { text, pages: count, ...warning };
    }
    const failure = failureOf(read);
    if (failure !== undefined) throw failure;
    if (scraps.length > 0) return { text: "", pages: count, ...warning };
    throw new KbsyncError("no text was recognised in the image", {
      code: "image_without_text",
      subject: path,
      hint: "text needs some twenty pixels of height; kb.ocr.languages names the languages that are recognised",
    });
  };

  const extractPage = async (
    path: string,
    { tenant, whileWaiting = justWait }: Behalf,
  ): Promise<Extraction> => {
    const page = { path, encoding: undefined, url: "" };
    const text = bounded(await whileWaiting(() => pages.read(page, tenant), 0), charsMax, path);
    if (text !== "") return { text };
    throw new KbsyncError("there is no text in the page", {
      code: "page_without_text",
      subject: path,
      hint: "scripts may make it, and none are run: save the page as it is shown and send that",
    });
  };

  /** The same upload asked for twice at once, as after an answer that came too late, is read once. */
  const underWay = new Map<string, Promise<Extraction>>();
  const once = async (path: string, extract: () => Promise<Extraction>): Promise<Extraction> => {
    const running = underWay.get(path);
    if (running !== undefined) return await running;
    const mine = extract().finally(() => underWay.delete(path));
    underWay.set(path, mine);
    return await mine;
  };

  return {
    extractText: async ({ path, mediaType, form = "undeclared", behalf = {} }, signal) => {
      signal?.throwIfAborted();
      // Work that one caller may break off is shared with nobody.
      const share =
        signal === undefined ? once : (_path: string, extract: () => Promise<Extraction>) => extract();
      switch (mediaType) {
        case "text/plain":
          if (await isPage(path, form)) return await extractPage(path, behalf);
          return {
            text: await structured.layOut(await readText(path, charsMax, signal), form, behalf.tenant),
          };
        case "application/pdf":
          return await share(path, () => extractPdf(path, behalf, signal));
        case "image/png":
        case "image/jpeg":
        case "image/webp":
        case "image/gif":
        case "image/bmp":
        case "image/tiff":
          return await share(path, () => extractImage(path, mediaType, behalf, signal));
      }
    },
    ocr,
    close: () => {
      pool.close();
      pages.close();
      structured.close();
      ocr.close();
    },
  };
}

/** Numbers of the pages of which only scraps were recognised. */
function scrapPages(pages: readonly OcrPage[]): readonly number[] {
  return pages.filter(({ lines }) => holdsScraps(lines)).map(({ page }) => page);
}

function warningOf(scraps: readonly number[], unread: string | undefined): { readonly warning?: string } {
  const sentences = [scrapsWords(scraps), unread].filter((one) => one !== undefined);
  return sentences.length === 0 ? {} : { warning: sentences.join(" ") };
}

/** A page is declared as one, or nothing is declared; and its bytes agree, for much that is named so is a template. */
async function isPage(path: string, form: TextForm): Promise<boolean> {
  if (form !== "page" && form !== "undeclared") return false;
  return looksLikePage(await readHead(path, PAGE_HEAD_BYTES));
}

function bounded(text: string, charsMax: number, subject: string): string {
  if (text.length <= charsMax) return text;
  throw new KbsyncError(`the text is longer than the limit of ${charsMax} characters`, {
    code: "text_too_large",
    subject,
    hint: "split the document",
  });
}

async function readText(path: string, charsMax: number, signal: AbortSignal | undefined): Promise<string> {
  const pieces = decodeTextFile(path, signal);
  const kept: string[] = [];
  let chars = 0;
  for (;;) {
    const step = await pieces.next();
    if (step.done === true) {
      if (step.value === "text") return kept.join("");
      throw new KbsyncError("the file is not text: expected UTF-8, or UTF-16 with a byte-order mark", {
        code: "unsupported_media_type",
        subject: path,
      });
    }
    kept.push(step.value);
    chars += step.value.length;
    if (chars > charsMax) {
      await pieces.return("text"); // closes the file
      throw new KbsyncError(`the text is longer than the limit of ${charsMax} characters`, {
        code: "text_too_large",
        subject: path,
        hint: "split the document",
      });
    }
  }
}

function pageCount(pages: number): string {
  return pages === 1 ? "only page" : `${pages} pages`;
}

import { KbsyncError } from "../../../lib/failure.ts";
import type { MediaType } from "./media-type.ts";
import { openPdfPool } from "./pdf-pool.ts";
import { decodeTextFile } from "./text-file.ts";

/** A file on disk and what `detectMediaType` found it to be. */
export interface ExtractableFile {
  readonly path: string;
  readonly mediaType: MediaType;
}

/** The text of a file, well-formed UTF-16 without NUL characters. */
export interface Extraction {
  /** Pages of a PDF are joined by a blank line; text is as it stands in the file, without the byte-order mark. */
  readonly text: string;
  /** Number of pages; of a PDF only. */
  readonly pages?: number;
}

/** Bounds of the extraction; each has a default. */
export interface ExtractorOptions {
  /** Most characters of a document's text. Default 33 million, some 10,000 pages. */
  readonly charsMax?: number;
  /** Most PDFs read at once. Default 2. */
  readonly processes?: number;
  /** Memory for reading one PDF, beyond what Node takes. Default 512 MB. */
  readonly memoryMb?: number;
  /** Time for reading one PDF. Default 60 s. */
  readonly timeoutMs?: number;
  /** How long a process waits for a next PDF before it ends. Default 10 s. */
  readonly idleMs?: number;
}

/** Turns files into text. PDFs are read in child processes with capped memory and time. */
export interface Extractor {
  /**
   * Rejects with `unsupported_media_type` (text that is none), `not_implemented` (images), `text_too_large`, and for
   * PDFs `encrypted_pdf`, `damaged_pdf`, `pdf_without_text`, `extraction_memory`, `extraction_timeout`; with
   * `extraction_failed` where the file or the child process fails, and with the signal's reason.
   */
  extractText(file: ExtractableFile, signal?: AbortSignal): Promise<Extraction>;
  /** Ends the child processes; PDFs under way fail. */
  close(): void;
}

/** No smaller than the largest text file that can be uploaded. */
const CHARS_MAX = 32 * 1024 * 1024;

/** What stands between two pages: the boundary at which every chunker likes best to cut. */
const PAGE_BREAK = "\n\n";

/** Makes an extractor. It starts no process before the first PDF, and never keeps this process alive by itself. */
export function openExtractor(options: ExtractorOptions = {}): Extractor {
  const charsMax = options.charsMax ?? CHARS_MAX;
  const pool = openPdfPool({
    processes: options.processes ?? 2,
    memoryMb: options.memoryMb ?? 512,
    timeoutMs: options.timeoutMs ?? 60_000,
    idleMs: options.idleMs ?? 10_000,
  });

  const extractPdf = async (path: string, signal: AbortSignal | undefined): Promise<Extraction> => {
    const { texts } = await pool.extract({ path, charsMax }, signal);
    const text = texts.filter((page) => page !== "").join(PAGE_BREAK);
    if (text !== "") return { text, pages: texts.length };
    throw new KbsyncError(
      `the PDF has no text on its ${pageCount(texts.length)}: it holds images only, or nothing`,
      {
        code: "pdf_without_text",
        subject: path,
        hint: "recognising text in images (OCR) comes in a later version; send a PDF with a text layer until then",
      },
    );
  };

  return {
    extractText: async ({ path, mediaType }, signal) => {
      signal?.throwIfAborted();
      switch (mediaType) {
        case "text/plain":
          return { text: await readText(path, charsMax, signal) };
        case "application/pdf":
          return await extractPdf(path, signal);
        case "image/png":
        case "image/jpeg":
        case "image/webp":
        case "image/gif":
        case "image/bmp":
        case "image/tiff":
          throw new KbsyncError("text in images cannot be read yet", {
            code: "not_implemented",
            subject: path,
            hint: "recognising text in images (OCR) comes in a later version",
          });
      }
    },
    close: () => pool.close(),
  };
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

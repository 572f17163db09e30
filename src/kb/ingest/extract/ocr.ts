import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { openCappedPool, type AskOptions } from "../../../lib/capped/pool.ts";
import { KbsyncError } from "../../../lib/failure.ts";
import { siblingModule } from "../../../lib/sibling.ts";
import type { MediaType } from "./media-type.ts";
import type { OcrData, OcrPart, OcrRequest } from "./ocr-child.ts";
import type { OcrFailure } from "./ocr-picture.ts";
import { ocrError } from "./ocr-error.ts";
import { bytesOfFile, pdfCpuMs } from "./pdf-budget.ts";
import type { OcrPage } from "./ocr-layout.ts";

/** How text in pictures is recognised; each has a default. */
export interface OcrOptions {
  /** Languages by their three letters (ISO 639-2), the likeliest first. Default: English. */
  readonly languages?: readonly string[];
  /** Folder with the data of each language, all packed or none. Default: the package's, which is English alone. */
  readonly dataDir?: string | undefined;
  /**
   * Most pages of one document whose text is recognised; 0: none is ever. Of a PDF with more the first ones are, an image
   * is refused. Default 100, some ten minutes.
   */
  readonly pagesMax?: number;
  /** Most pixels of a picture. Default 64 million: an A4 page at 600 dots an inch has 35. */
  readonly pixelsMax?: number;
  /** Pictures read at once, each with a core of its own. Default 1. */
  readonly processes?: number;
  /**
   * Memory of one process, beyond what Node takes, reserved and unused included: of that the recogniser's thread has some
   * 1500 MB. Default 3584: a page takes 600 MB in truth, the largest picture 1 GB.
   */
  readonly memoryMb?: number;
  /** Time for one page. Default 180 s: ten times what it takes where nothing else runs. */
  readonly timeoutMs?: number;
  /**
   * Time for one document as a whole: no page of it is begun after that. Its pages wait for those of all others, which does
   * not count. Default 30 min.
   */
  readonly documentMs?: number;
  /** How long a process waits for the next picture. Default 30 s: starting one takes a second. */
  readonly idleMs?: number;
  /** A clock that nobody sets, for `documentMs`. Default: that of the timers. */
  readonly elapsedMs?: () => number;
}

/** What was read of a document's pages. */
export interface ReadPages {
  readonly pages: readonly OcrPage[];
  /** In order. */
  readonly unread: readonly UnreadPage[];
}

/** A page that was not read: it failed, the bounds of one document left it out, or it came after too many that failed. */
export interface UnreadPage {
  readonly page: number;
  readonly why: "bound" | "failures" | KbsyncError;
}

/**
 * Pages of one document that may fail: each may take all the time of a page, and most often all fail for one reason. Those of
 * a PDF together take no longer than one of them may.
 */
const FAILURES_MAX = 3;

/** What a page may fail of, which others of its document need not. */
const PAGE_FAILURES: ReadonlySet<string> = new Set([
  "damaged_image",
  "damaged_pdf",
  "extraction_memory",
  "extraction_timeout",
  "extraction_crashed",
]);

/** How a document is read. */
export type ReadOptions = Pick<AskOptions, "signal" | "tenant">;

/** Recognises text in pictures. */
export interface Ocr {
  /** Most pages of one document; 0: it is switched off. */
  readonly pagesMax: number;
  /**
   * Reads an image: each page of a TIFF as `readPages` does, the first picture of an animation. Rejects with
   * `image_too_large`, `too_many_pages`, `extraction_failed`, `extractor_busy`, or the signal's reason, and where no page was
   * read with `damaged_image`, `extraction_memory`, `extraction_timeout` or `extraction_crashed`.
   */
  readImage(path: string, mediaType: MediaType, options?: ReadOptions): Promise<ReadPages>;
  /**
   * Reads these pages (from 1) of a PDF, in order, as far as the bounds of one document allow, and the first in any case.
   * Rejects with `extraction_failed`, `extractor_busy`, or the signal's reason; what single pages failed of is in `unread`.
   */
  readPages(path: string, pages: readonly number[], options?: ReadOptions): Promise<ReadPages>;
  close(): void;
}

/**
 * Opens the recogniser. Its process starts with the first picture. Throws `ocr_data_missing` at once where a language's
 * data is not there: nothing is ever fetched.
 */
export function openOcr(options: OcrOptions = {}): Ocr {
  const pagesMax = options.pagesMax ?? 100;
  const pixelsMax = options.pixelsMax ?? 64_000_000;
  const documentMs = options.documentMs ?? 30 * 60_000;
  const limits = { memoryMb: options.memoryMb ?? 3584, timeoutMs: options.timeoutMs ?? 180_000 };
  const elapsedMs = options.elapsedMs ?? (() => performance.now());
  const data = dataAt(options.languages ?? ["eng"], options.dataDir);
  const pool = openCappedPool<OcrRequest, OcrPart, OcrFailure>(
    {
      module: siblingModule(import.meta.url, "ocr-child"),
      // The decoders are native, and the recogniser keeps a thread.
      flags: ["--allow-addons", "--allow-worker"],
      cpuMs: ({ bytes }) => (bytes === undefined ? undefined : pdfCpuMs(bytes)),
      failure: (code, request, detail) => ocrError(code, request, limits, detail),
    },
    {
      ...limits,
      processes: options.processes ?? 1,
      idleMs: options.idleMs ?? 30_000,
      busyCode: "extractor_busy",
    },
  );
  const ask = { pixelsMax, pagesMax, data };

  /** One by one, so that another document's pages and images take their turn in between. */
  const readEach = async (
    request: OcrRequest,
    pages: readonly number[],
    given: ReadOptions | undefined,
  ): Promise<ReadPages> => {
    const read: OcrPage[] = [];
    const unread: UnreadPage[] = [];
    let workedMs = 0;
    let failedMs = 0;
    const failedMsMax = request.bytes === undefined ? Infinity : pdfCpuMs(request.bytes);
    for (const [at, page] of pages.entries()) {
      const isBound = at >= pagesMax || (at > 0 && workedMs > documentMs);
      if (isBound || unread.length >= FAILURES_MAX || failedMs >= failedMsMax) {
        const why = isBound ? "bound" : "failures";
        unread.push(...pages.slice(at).map((left) => ({ page: left, why }) as const));
        break;
      }
      let turnMs = elapsedMs();
      try {
        const parts = await pool.ask(
          { ...request, page },
          { ...given, onTurn: () => (turnMs = elapsedMs()) },
        );
        read.push(...parts.filter((part) => "page" in part));
      } catch (error) {
        if (!(error instanceof KbsyncError && PAGE_FAILURES.has(error.code))) throw error;
        unread.push({ page, why: error });
        failedMs += elapsedMs() - turnMs;
      }
      workedMs += elapsedMs() - turnMs;
    }
    return { pages: read, unread };
  };

  return {
    pagesMax,
    readImage: async (path, mediaType, given) => {
      const request = { ...ask, path, mediaType };
      const counted = mediaType === "image/tiff" ? await pool.ask(request, given) : [];
      const count = counted.find((part) => "pageCount" in part)?.pageCount ?? 1;
      const numbers = Array.from({ length: count }, (_, at) => at + 1);
      const read = await readEach(request, numbers, given);
      const failure = failureOf(read);
      if (read.pages.length === 0 && failure !== undefined) throw failure;
      return read;
    },
    readPages: async (path, pages, given) => {
      const bytes = await bytesOfFile(path);
      return await readEach({ ...ask, path, bytes, mediaType: "application/pdf" }, pages, given);
    },
    close: () => pool.close(),
  };
}

/** What the first page that failed failed of. */
export function failureOf({ unread }: Pick<ReadPages, "unread">): KbsyncError | undefined {
  return unread.map(({ why }) => why).find((why) => typeof why !== "string");
}

/** Where the languages' data lies: in the given folder, or of English in the package. */
function dataAt(languages: readonly string[], dataDir: string | undefined): OcrData {
  const folder =
    dataDir ?? join(dirname(fileURLToPath(import.meta.resolve("@tesseract.js-data/eng"))), "4.0.0_best_int");
  for (const [packed, ending] of [
    [true, ".traineddata.gz"],
    [false, ".traineddata"],
  ] as const) {
    if (languages.every((code) => existsSync(join(folder, code + ending))))
      return { languages, folder, packed };
  }
  const names = languages.map((code) => `${code}.traineddata`).join(", ");
  throw new KbsyncError(
    `there is no data to recognise the languages ${languages.join(", ")}: expected ${names}`,
    {
      code: "ocr_data_missing",
      subject: folder,
      hint: "Put the data of each language, English too, into the folder that kb.ocr.dataDir names: all with the ending .traineddata, or all with .traineddata.gz (github.com/tesseract-ocr/tessdata_best).",
    },
  );
}

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { openCappedPool, type AskOptions } from "../../../lib/capped/pool.ts";
import { KbsyncError } from "../../../lib/failure.ts";
import { entryUrl } from "../../../lib/package.ts";
import type { MediaType } from "./media-type.ts";
import type { OcrData, OcrPart, OcrRequest } from "./ocr-child.ts";
import type { OcrFailure } from "./ocr-picture.ts";
import { ocrError } from "./ocr-error.ts";
import { dataFolder } from "./data-folder.ts";
import { bytesOfFile, pdfCpuMs } from "./pdf-budget.ts";
import { holdsScraps, holdsText, ocrText, type OcrPage } from "./ocr-layout.ts";

/** Options of text recognition; each has a default. */
export interface OcrOptions {
  /** Languages by their three letters (ISO 639-2), the likeliest first. Default: English. */
  readonly languages?: readonly string[];
  /**
   * Folder with the data of each language, either all packed or none. Default: the package's, which has only English, else the one in
   * TESSDATA_PREFIX, Tesseract's own variable.
   */
  readonly dataDir?: string | undefined;
  /**
   * Most pages of one document whose text is recognised; 0 switches recognition off. Of a PDF with more pages the first ones are read; an
   * image with more is refused. Default 100, some ten minutes.
   */
  readonly pagesMax?: number;
  /** Most pixels of a picture. Default 64 million: an A4 page at 600 dots an inch has 35. */
  readonly pixelsMax?: number;
  /** Most pictures read at the same time, each on one core. Default 1. */
  readonly processes?: number;
  /**
   * Address space of one process in addition to Node's own; the recogniser's thread alone reserves some 1500 MB. Default 3584. A page
   * actually uses 600 MB, the largest picture 1 GB.
   */
  readonly memoryMb?: number;
  /** Processor time of one page. Default 180 s, ten times what a page takes. */
  readonly cpuMs?: number;
  /** Processor time of one document: no page starts after it. Default 30 min. */
  readonly documentCpuMs?: number;
  /** How long an idle process waits for the next picture. Default 30 s; a start takes a second. */
  readonly idleMs?: number;
}

/** The recognised pages of a document: with the position of the text, or its text alone. */
export interface ReadPages<T = OcrPage> {
  readonly pages: readonly T[];
  /** In order. */
  readonly unread: readonly UnreadPage[];
}

/** A page that was not read: it failed, exceeds the bounds of one document, or follows too many failures. */
export interface UnreadPage {
  readonly page: number;
  readonly why: "bound" | "failures" | KbsyncError;
}

/** The text of a page; empty if it has none, or scraps only. */
export interface PageText {
  readonly page: number;
  readonly text: string;
  readonly isScraps: boolean;
}

/** How reading a page ended, and the processor time that it took. */
type PageEnd<T> = { readonly cpuMs: number } & (
  | { readonly read: T }
  | { readonly failure: Pick<KbsyncError, "code" | "message" | "hint"> }
);

/** The pages of a file that earlier tries of reading it have read. Its values are JSON. */
export interface PageMemory {
  get(page: number): PageEnd<PageText> | undefined;
  put(page: number, end: PageEnd<PageText>): Promise<void>;
}

/**
 * Failed pages after which a document ends: each may use the whole time of a page, and usually all fail for one reason. The failed
 * pages of a PDF together may take no more processor time than one page.
 */
const FAILURES_MAX = 3;

/** Failures of a single page; other pages of the document may succeed. */
const PAGE_FAILURES: ReadonlySet<string> = new Set([
  "damaged_image",
  "damaged_pdf",
  "extraction_memory",
  "extraction_timeout",
  "extraction_crashed",
]);

/** Options of reading a document. */
export type ReadOptions = Omit<AskOptions, "onUsed">;

type TextOptions = ReadOptions & { readonly memory?: PageMemory | undefined };

/** Recognises text in pictures. */
export interface Ocr {
  /** Most pages of one document; 0: text recognition is switched off. */
  readonly pagesMax: number;
  /**
   * Reads an image: the pages of a TIFF one by one, the first picture of an animation. Rejects with `image_too_large`,
   * `too_many_pages`, `extraction_failed`, `extractor_busy`, or the signal's reason; if no page was read also with `damaged_image`,
   * `extraction_memory`, `extraction_timeout` or `extraction_crashed`.
   */
  readImage(path: string, mediaType: MediaType, options: ReadOptions): Promise<ReadPages>;
  /** As `readImage`, but returns text, and does not repeat the pages that `memory` has. */
  readImageText(path: string, mediaType: MediaType, options: TextOptions): Promise<ReadPages<PageText>>;
  /**
   * Reads the given pages (from 1) of a PDF, in order, within the bounds of one document; always the first. Rejects with
   * `extraction_failed`, `extractor_busy`, or the signal's reason; `unread` has the failures of single pages.
   */
  readPages(path: string, pages: readonly number[], options: TextOptions): Promise<ReadPages<PageText>>;
  close(): void;
}

/**
 * Opens the recogniser. The first picture starts its process. Throws `ocr_data_missing` at once if the data of a language is missing;
 * nothing is ever downloaded.
 */
export function openOcr(options: OcrOptions = {}): Ocr {
  const pagesMax = options.pagesMax ?? 100;
  const pixelsMax = options.pixelsMax ?? 64_000_000;
  const documentCpuMs = options.documentCpuMs ?? 30 * 60_000;
  const limits = { memoryMb: options.memoryMb ?? 3584, cpuMs: options.cpuMs ?? 180_000 };
  const data = dataAt(options.languages ?? ["eng"], options.dataDir);
  const pool = openCappedPool<OcrRequest, OcrPart, OcrFailure>(
    {
      module: entryUrl("kb/ingest/extract/ocr-child"),
      // The decoders are native, and the recogniser has a thread.
      flags: ["--allow-addons", "--allow-worker"],
      cpuMs: ({ bytes }) => (bytes === undefined ? undefined : pdfCpuMs(bytes)),
      failure: (code, request, detail) => ocrError(code, request, limits, detail),
    },
    {
      ...limits,
      processes: options.processes ?? 1,
      // No account waits for the pages of another to finish.
      guests: 1,
      idleMs: options.idleMs ?? 30_000,
    },
  );
  const ask = { pixelsMax, pagesMax, data };
  const bounds = { pagesMax, documentCpuMs, failedCpuMsMax: Infinity };

  const readPage = async (request: OcrRequest, given: ReadOptions): Promise<PageEnd<OcrPage>> => {
    let cpuMs = 0;
    try {
      const parts = await pool.ask(request, { ...given, onUsed: (usedMs) => (cpuMs += usedMs) });
      const read = parts.find((part) => "page" in part);
      assert(read !== undefined, "a page was read without an answer");
      return { cpuMs, read };
    } catch (error) {
      if (!(error instanceof KbsyncError && PAGE_FAILURES.has(error.code))) throw error;
      return { cpuMs, failure: error };
    }
  };
  const readText = async (
    request: OcrRequest & { readonly page: number },
    { memory, ...given }: TextOptions,
  ): Promise<PageEnd<PageText>> => {
    const { page } = request;
    const known = memory?.get(page);
    if (known !== undefined) return known;
    const end = await readPage(request, given);
    const ended = "read" in end ? { ...end, read: textOf(end.read) } : end;
    await memory?.put(page, ended);
    return ended;
  };

  const readEachOfImage = async <T>(
    request: OcrRequest,
    given: ReadOptions,
    readOne: (page: number) => Promise<PageEnd<T>>,
  ): Promise<ReadPages<T>> => {
    const counted = request.mediaType === "image/tiff" ? await pool.ask(request, given) : [];
    const count = counted.find((part) => "pageCount" in part)?.pageCount ?? 1;
    const numbers = Array.from({ length: count }, (_, at) => at + 1);
    const read = await readEach(numbers, bounds, readOne);
    const failure = failureOf(read);
    if (read.pages.length === 0 && failure !== undefined) throw failure;
    return read;
  };

  return {
    pagesMax,
    readImage: async (path, mediaType, given) => {
      const request = { ...ask, path, mediaType };
      return await readEachOfImage(request, given, (page) => readPage({ ...request, page }, given));
    },
    readImageText: async (path, mediaType, { memory, ...given }) => {
      const request = { ...ask, path, mediaType };
      const readOne = (page: number) => readText({ ...request, page }, { memory, ...given });
      return await readEachOfImage(request, given, readOne);
    },
    readPages: async (path, pages, given) => {
      const bytes = await bytesOfFile(path);
      const request = { ...ask, path, bytes, mediaType: "application/pdf" };
      return await readEach(pages, { ...bounds, failedCpuMsMax: pdfCpuMs(bytes) }, (page) =>
        readText({ ...request, page }, given),
      );
    },
    close: () => pool.close(),
  };
}

/** The bounds of one document. */
interface DocumentBounds {
  readonly pagesMax: number;
  readonly documentCpuMs: number;
  /** Most processor time of failed pages. */
  readonly failedCpuMsMax: number;
}

/** Reads pages one by one, so that other documents take turns in between. */
async function readEach<T>(
  pages: readonly number[],
  { pagesMax, documentCpuMs, failedCpuMsMax }: DocumentBounds,
  readOne: (page: number) => Promise<PageEnd<T>>,
): Promise<ReadPages<T>> {
  const read: T[] = [];
  const unread: UnreadPage[] = [];
  let cpuMs = 0;
  let failedCpuMs = 0;
  for (const [at, page] of pages.entries()) {
    const isBound = at >= pagesMax || (at > 0 && cpuMs > documentCpuMs);
    if (isBound || unread.length >= FAILURES_MAX || failedCpuMs >= failedCpuMsMax) {
      const why = isBound ? "bound" : "failures";
      unread.push(...pages.slice(at).map((left) => ({ page: left, why }) as const));
      break;
    }
    const end = await readOne(page);
    cpuMs += end.cpuMs;
    if ("read" in end) read.push(end.read);
    else {
      unread.push({ page, why: errorOf(end.failure) });
      failedCpuMs += end.cpuMs;
    }
  }
  return { pages: read, unread };
}

function textOf(read: OcrPage): PageText {
  const { page, lines } = read;
  return { page, text: holdsText(lines) ? ocrText(read) : "", isScraps: holdsScraps(lines) };
}

function errorOf(failure: Pick<KbsyncError, "code" | "message" | "hint">): KbsyncError {
  const { code, message, hint } = failure;
  return failure instanceof KbsyncError ? failure : new KbsyncError(message, { code, hint });
}

/** Returns the error of the first failed page, if any. */
export function failureOf({ unread }: Pick<ReadPages, "unread">): KbsyncError | undefined {
  return unread.map(({ why }) => why).find((why) => typeof why !== "string");
}

/** Finds the data of the languages: in the given folder, else in the package for English alone, else in TESSDATA_PREFIX. */
function dataAt(languages: readonly string[], dataDir: string | undefined): OcrData {
  const { TESSDATA_PREFIX: prefix = "" } = process.env;
  const folders = dataDir === undefined ? [dataFolder("ocr"), ...(prefix === "" ? [] : [prefix])] : [dataDir];
  for (const folder of folders) {
    for (const [packed, ending] of [
      [true, ".traineddata.gz"],
      [false, ".traineddata"],
    ] as const) {
      if (languages.every((code) => existsSync(join(folder, code + ending))))
        return { languages, folder, packed };
    }
  }
  const names = languages.map((code) => `${code}.traineddata`).join(", ");
  throw new KbsyncError(
    `there is no data to recognise the languages ${languages.join(", ")}: expected ${names}`,
    {
      code: "ocr_data_missing",
      subject: folders.join(", "),
      hint: "Put the data of each language, English too, into one folder, and name it in the environment variable TESSDATA_PREFIX: all with the ending .traineddata, or all with .traineddata.gz (github.com/tesseract-ocr/tessdata_best).",
    },
  );
}

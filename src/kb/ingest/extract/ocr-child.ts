import type { Sharp } from "sharp";
import type { Worker } from "tesseract.js";
import { answerRequests, CappedRefusal, isOutOfMemory } from "../../../lib/capped/child.ts";
import { foreignKind } from "../../../lib/capped/foreign.ts";
import { messageOf } from "../../../lib/failure.ts";
import { linesOf, readingQuality, readingScore, type OcrLine, type OcrPage } from "./ocr-layout.ts";
import { openDrawnPdf, PdfiumError } from "./ocr-page-image.ts";
import { type OcrFailure, openPicture, type Picture } from "./ocr-picture.ts";

/** The languages, and the folder of their data: `CODE.traineddata`, or with `.gz` if packed. */
export interface OcrData {
  readonly languages: readonly string[];
  readonly folder: string;
  readonly packed: boolean;
}

/** A request of the parent process: the text of a page (from 1), or the number of pages of an image. */
export interface OcrRequest {
  readonly path: string;
  readonly mediaType: string;
  /** Size of a PDF, which limits the processor time for drawing a page. */
  readonly bytes?: number;
  /** Undefined: return the number of pages. */
  readonly page?: number;
  readonly pixelsMax: number;
  /** Most pages of one image file. */
  readonly pagesMax: number;
  readonly data: OcrData;
}

/** An answer to the parent process. */
export type OcrPart = OcrPage | { readonly pageCount: number };

/** Smaller pictures have the letters of a screen, which are recognised better at twice the size. */
const SCREEN_PIXELS = 3_500_000;
/** A scan declares its resolution, and needs no enlargement. */
const SCAN_DENSITY = 150;
/** Larger pictures are reduced before they are read. An A3 page at 300 dots an inch has 17 million pixels. */
const READ_PIXELS_MAX = 20_000_000;
/** Longest side of the reduced picture that is used to find its orientation. */
const TURN_SIDE_PX = 1600;
/** A picture with a shorter side holds no letter: a spacer, a rule, a counting pixel of a mail. */
const LETTER_PX_MIN = 5;
/** Processor time for recognising a drawn page: some five times that of the largest page in all orientations. */
const READ_CPU_MS = 120_000;
/** Text of this quality is upright. */
const UPRIGHT_QUALITY = 0.6;

let recogniser: Promise<Worker> | undefined;

answerRequests<OcrRequest, OcrPart, OcrFailure>(async (request, give, allow) => {
  const { page } = request;
  if (page === undefined) {
    give({ pageCount: (await openImage(request)).pages });
    return;
  }
  give(
    await (request.mediaType === "application/pdf"
      ? readPdfPage(request, page, () => allow(READ_CPU_MS))
      : readImagePage(request, page)),
  );
}, codeFor);

/** Loading takes a second, and all requests of a process use the same data. */
async function loadRecogniser(data: OcrData): Promise<Worker> {
  return (recogniser ??= startRecogniser(data));
}

async function startRecogniser({ languages, folder, packed }: OcrData): Promise<Worker> {
  try {
    const { createWorker, OEM } = await import("tesseract.js");
    return await createWorker([...languages], OEM.LSTM_ONLY, {
      langPath: folder,
      gzip: packed,
      cacheMethod: "none",
      errorHandler: () => undefined,
    });
  } catch (error) {
    // The next request tries again: the data or the memory that was missing may be available then.
    recogniser = undefined;
    throw error;
  }
}

async function openImage({ path, mediaType, pixelsMax, pagesMax }: OcrRequest): Promise<Picture> {
  const picture = await openPicture(path, mediaType, pixelsMax);
  if (picture.pages > pagesMax)
    throw new CappedRefusal<OcrFailure>("too_many_pages", `${picture.pages} pages`);
  return picture;
}

async function readImagePage(request: OcrRequest, page: number): Promise<OcrPage> {
  const picture = await openImage(request);
  // A TIFF declares the size of its first page only.
  if (picture.pages === 1 && Math.min(picture.widthPx, picture.heightPx) < LETTER_PX_MIN)
    return { page, lines: [] };
  const worker = await loadRecogniser(request.data);
  const isScreen =
    picture.widthPx * picture.heightPx < SCREEN_PIXELS && (picture.density ?? 72) < SCAN_DENSITY;
  return { page, lines: await recognise(worker, picture.decode(page - 1), isScreen ? 2 : 1) };
}

async function readPdfPage(
  { path, pixelsMax, data }: OcrRequest,
  page: number,
  onDrawn: () => void,
): Promise<OcrPage> {
  const worker = await loadRecogniser(data);
  const pdf = await openDrawnPdf(path, Math.min(pixelsMax, READ_PIXELS_MAX));
  const picture = await pdf.draw(page);
  onDrawn();
  if (picture === undefined) return { page, lines: [] };
  return { page, lines: await recognise(worker, picture, 1) };
}

/** Reads a picture. If the text makes little sense, tries all orientations on a reduced copy and reads the picture in the best one. */
async function recognise(worker: Worker, picture: Sharp, wanted: number): Promise<OcrLine[]> {
  const { data, info } = await decodeRaw(picture);
  const scale = Math.min(wanted, Math.sqrt(READ_PIXELS_MAX / (info.width * info.height)));
  const upright = await readTurned(worker, data, info, 0, { scale });
  if (readingQuality(upright) >= UPRIGHT_QUALITY) return upright;

  const reduce = Math.min(1, TURN_SIDE_PX / Math.max(info.width, info.height)) * scale;
  let best = { turn: 0, score: 0 };
  for (const turn of [0, 90, 180, 270]) {
    const lines =
      turn === 0 && reduce === scale
        ? upright
        : await readTurned(worker, data, info, turn, { scale: reduce });
    const score = readingScore(lines);
    if (score > best.score) best = { turn, score };
  }
  return best.turn === 0 ? upright : await readTurned(worker, data, info, best.turn, { scale });
}

interface RawInfo {
  readonly width: number;
  readonly height: number;
  readonly channels: 1 | 2 | 3 | 4;
}

async function decodeRaw(picture: Sharp): Promise<{ data: Buffer; info: RawInfo }> {
  try {
    const { data, info } = await picture.raw().toBuffer({ resolveWithObject: true });
    return { data, info: { width: info.width, height: info.height, channels: info.channels } };
  } catch (error) {
    if (isOutOfMemory(messageOf(error))) throw error;
    throw new CappedRefusal<OcrFailure>("damaged_image", messageOf(error));
  }
}

async function readTurned(
  worker: Worker,
  data: Buffer,
  raw: RawInfo,
  degrees: number,
  { scale }: { scale: number },
): Promise<OcrLine[]> {
  const { default: sharp } = await import("sharp");
  const width = Math.max(1, Math.round(raw.width * scale));
  const height = Math.max(1, Math.round(raw.height * scale));
  const png = await sharp(data, { raw })
    .resize(width, height, { fit: "fill", kernel: "lanczos3" })
    .rotate(degrees)
    .png({ compressionLevel: 0 })
    .toBuffer();
  const { data: found } = await worker.recognize(png, {}, { text: false, blocks: true });
  return linesOf(found.blocks ?? []);
}

function codeFor(error: unknown): OcrFailure {
  // Thrown only in this file and ocr-picture.ts, with these codes.
  if (error instanceof CappedRefusal) return error.code as OcrFailure;
  const kind = foreignKind(error);
  if (kind === "memory") return "memory";
  if (error instanceof PdfiumError) return "damaged_pdf";
  return kind === "machine" ? "unable" : "damaged_image";
}

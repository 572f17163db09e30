// oxlint-disable-next-line typescript/triple-slash-reference -- a declaration of a package cannot be imported
/// <reference path="./pdfium.d.ts" />
import { readFile } from "node:fs/promises";
import { type Pdfium, PDFiumModule } from "@hyzyla/pdfium";
import sharp, { type Sharp } from "sharp";

/** A PDF whose pages can be drawn. It holds memory of its own, which is freed with its last reference. */
export interface DrawnPdf {
  /** Draws a page (from 1) in greys; undefined if it has only one colour. Throws a PdfiumError; then draw no more. */
  draw(page: number): Promise<Sharp | undefined>;
}

/** PDFium cannot open or draw a document. */
export class PdfiumError extends Error {}

/** The usual resolution of scans. A higher one makes recognition slower but no better. */
const DOTS_PER_INCH = 300;
/** PDF's own unit: a point is a seventy-second of an inch. */
const POINTS_PER_INCH = 72;

/** `FPDFBitmap_Gray`: a byte for each pixel. */
const GREY = 1;
const WHITE = 0xff_ff_ff_ff;
/** `FPDF_ANNOT | FPDF_GRAYSCALE`: stamps and remarks are part of what a reader sees. */
const FLAGS = 0x01 | 0x08;

/**
 * Opens a PDF for drawing, in an instance of PDFium of its own: a document that crashes it leaves nothing to the next. Fonts, tables and
 * decoders are compiled in. Throws a PdfiumError.
 */
export async function openDrawnPdf(path: string, pixelsMax: number): Promise<DrawnPdf> {
  const bytes = await readFile(path);
  const pdfium = await PDFiumModule({});
  const document = guard(() => openDocument(pdfium, bytes));
  return {
    draw: async (number) => {
      const { data, ...size } = guard(() => drawPage(pdfium, document, number, pixelsMax));
      const picture = sharp(data, { raw: { ...size, channels: 1 } }).greyscale();
      const { channels } = await picture.clone().stats();
      return channels.every(({ min, max }) => max - min < 8) ? undefined : picture;
    },
  };
}

/** Turns a crash of PDFium into an error about the document. */
function guard<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof Error && error.name === "RuntimeError")
      throw new PdfiumError(`it crashes PDFium: ${error.message}`, { cause: error });
    throw error;
  }
}

function openDocument(pdfium: Pdfium, bytes: Uint8Array): number {
  pdfium._FPDF_InitLibraryWithConfig({ version: 2 });
  // PDFium reads from it as long as the document is open.
  const held = allocate(pdfium, bytes.length);
  pdfium.HEAPU8.set(bytes, held);
  const document = pdfium._FPDF_LoadMemDocument(held, bytes.length, 0);
  if (document === 0) throw new PdfiumError(`cannot open it: code ${pdfium._FPDF_GetLastError()}`);
  return document;
}

/** Returns the pixels of a page, a byte each. */
function drawPage(
  pdfium: Pdfium,
  document: number,
  number: number,
  pixelsMax: number,
): { readonly data: Uint8Array; readonly width: number; readonly height: number } {
  const page = pdfium._FPDF_LoadPage(document, number - 1);
  if (page === 0) throw new PdfiumError(`cannot read page ${number}: code ${pdfium._FPDF_GetLastError()}`);
  const points = { width: pdfium._FPDF_GetPageWidth(page), height: pdfium._FPDF_GetPageHeight(page) };
  const scale = Math.min(
    DOTS_PER_INCH / POINTS_PER_INCH,
    Math.sqrt(pixelsMax / Math.max(points.width * points.height, 1)),
  );
  const width = Math.max(1, Math.floor(points.width * scale));
  const height = Math.max(1, Math.floor(points.height * scale));
  // A page of a hair's breadth is at least a pixel wide, and could have any length.
  if (!(width * height <= pixelsMax)) throw new PdfiumError(`the page has ${width} × ${height} pixels`);
  const pixels = allocate(pdfium, width * height);
  const bitmap = pdfium._FPDFBitmap_CreateEx(width, height, GREY, pixels, width);
  if (bitmap === 0) throw new PdfiumError(`cannot draw ${width} × ${height} pixels`);
  pdfium._FPDFBitmap_FillRect(bitmap, 0, 0, width, height, WHITE);
  pdfium._FPDF_RenderPageBitmap(bitmap, page, 0, 0, width, height, 0, FLAGS);
  const data = pdfium.HEAPU8.slice(pixels, pixels + width * height);
  pdfium._FPDFBitmap_Destroy(bitmap);
  pdfium.wasmExports.free(pixels);
  pdfium._FPDF_ClosePage(page);
  return { data, width, height };
}

function allocate(pdfium: Pdfium, bytes: number): number {
  const at = pdfium.wasmExports.malloc(bytes);
  // Zero is an address like any other in WebAssembly: writing there would overwrite PDFium's own data.
  if (at === 0) throw new RangeError(`out of memory: ${bytes} bytes`);
  return at;
}

import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { createCanvas } from "@napi-rs/canvas";
import { getDocument } from "pdfjs-dist/legacy/build/pdf.mjs";
import sharp, { type Sharp } from "sharp";

/** A PDF whose pages can be drawn. */
export interface DrawnPdf {
  /** Draws a page (from 1) in greys; undefined if it has only one colour. */
  draw(page: number): Promise<Sharp | undefined>;
  close(): Promise<void>;
}

/** The usual resolution of scans. A higher one makes recognition slower but no better. */
const DOTS_PER_INCH = 300;
/** PDF's own unit: a point is a seventy-second of an inch. */
const POINTS_PER_INCH = 72;

const asset = (folder: string): string =>
  fileURLToPath(new URL(`${folder}/`, import.meta.resolve("pdfjs-dist/package.json")));

/** Opens a PDF for drawing. Fonts, tables and decoders come from the package, never from the network or the system. */
export async function openDrawnPdf(path: string, pixelsMax: number): Promise<DrawnPdf> {
  const document = await getDocument({
    data: new Uint8Array(await readFile(path)),
    verbosity: 0,
    cMapUrl: asset("cmaps"),
    cMapPacked: true,
    standardFontDataUrl: asset("standard_fonts"),
    wasmUrl: asset("wasm"),
    iccUrl: asset("iccs"),
    disableFontFace: true,
    useSystemFonts: false,
  }).promise;
  return {
    draw: async (number) => {
      const page = await document.getPage(number);
      const { width, height } = page.getViewport({ scale: 1 });
      const scale = Math.min(
        DOTS_PER_INCH / POINTS_PER_INCH,
        Math.sqrt(pixelsMax / Math.max(width * height, 1)),
      );
      const viewport = page.getViewport({ scale });
      const canvas = createCanvas(
        Math.max(1, Math.floor(viewport.width)),
        Math.max(1, Math.floor(viewport.height)),
      );
      await page.render({ canvas, viewport, background: "#ffffff" }).promise;
      page.cleanup();
      const raw = { width: canvas.width, height: canvas.height, channels: 4 } as const;
      const picture = sharp(Buffer.from(canvas.data()), { raw })
        .flatten({ background: "#ffffff" })
        .greyscale();
      const { channels } = await picture.clone().stats();
      return channels.every(({ min, max }) => max - min < 8) ? undefined : picture;
    },
    close: async () => {
      await document.loadingTask.destroy();
    },
  };
}

import { readFile } from "node:fs/promises";
import sharp, { type Sharp } from "sharp";
import { CappedRefusal, isOutOfMemory } from "../../../lib/capped/child.ts";
import { messageOf } from "../../../lib/failure.ts";
import { decodeBitmap, readBitmapHeader } from "./bitmap.ts";

/** Why a picture yields no text. */
export type OcrFailure =
  | "image_too_large"
  | "damaged_image"
  | "damaged_pdf"
  | "too_many_pages"
  | "memory"
  | "unable";

/** A picture whose size is known and whose pixels are not decoded yet. */
export interface Picture {
  readonly widthPx: number;
  readonly heightPx: number;
  /** Declared resolution in dots an inch, if any. */
  readonly density: number | undefined;
  /** Pages of a TIFF; 1 for other formats. */
  readonly pages: number;
  /** Decodes a page (from 0), rotated upright by the camera's metadata, in greys on white. */
  decode(page: number): Sharp;
}

/**
 * Reads a picture's header and refuses too many pixels before it decodes any: 10,000 × 10,000 pixels of one colour are 20 KB as a PNG
 * and 400 MB in memory. Reads only the first picture of an animation.
 */
export async function openPicture(path: string, mediaType: string, pixelsMax: number): Promise<Picture> {
  const input = await pictureInput(path, mediaType, pixelsMax);
  const options = { limitInputPixels: pixelsMax, failOn: "error", unlimited: false } as const;
  let meta;
  try {
    // sharp's own limit would not report the size.
    meta = await sharp(input, { ...options, limitInputPixels: false }).metadata();
  } catch (error) {
    throw new CappedRefusal<OcrFailure>("damaged_image", String(error));
  }
  const { width: widthPx, height: heightPx, density } = meta;
  refusePixels(widthPx, heightPx, pixelsMax);
  const pages = mediaType === "image/tiff" ? (meta.pages ?? 1) : 1;
  return {
    widthPx,
    heightPx,
    density,
    pages,
    decode: (page) =>
      sharp(input, pages > 1 ? { ...options, page } : options)
        .autoOrient()
        .flatten({ background: "#ffffff" })
        .greyscale(),
  };
}

/** Returns an input that sharp can read: the file itself, or a converted copy of a bitmap. */
export async function pictureInput(
  path: string,
  mediaType: string,
  pixelsMax: number,
): Promise<string | Buffer> {
  return mediaType === "image/bmp" ? await convertBitmap(path, pixelsMax) : path;
}

function refusePixels(widthPx: number, heightPx: number, pixelsMax: number): void {
  if (widthPx * heightPx > pixelsMax)
    throw new CappedRefusal<OcrFailure>("image_too_large", `${widthPx} × ${heightPx}`);
}

/** Converts a bitmap to PNG, because sharp does not read bitmaps. */
async function convertBitmap(path: string, pixelsMax: number): Promise<Buffer> {
  const bytes = await readFile(path);
  try {
    const header = readBitmapHeader(bytes);
    refusePixels(header.width, header.height, pixelsMax);
    const { data, width, height } = decodeBitmap(bytes, header);
    return await sharp(data, { raw: { width, height, channels: 3 } })
      .png({ compressionLevel: 1 })
      .toBuffer();
  } catch (error) {
    if (error instanceof CappedRefusal || isOutOfMemory(messageOf(error))) throw error;
    throw new CappedRefusal<OcrFailure>("damaged_image", String(error));
  }
}

import { readFile } from "node:fs/promises";
import { createCanvas, loadImage } from "@napi-rs/canvas";
import sharp, { type Sharp } from "sharp";
import { CappedRefusal } from "../../../lib/capped/child.ts";

/** Why nothing was read. */
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
  /** Dots an inch where it says so. */
  readonly density: number | undefined;
  /** Pages of a TIFF; 1 of everything else. */
  readonly pages: number;
  /** Decodes a page (from 0), upright as the camera says, in greys on white. */
  decode(page: number): Sharp;
}

/**
 * Reads a picture's header and refuses one of too many pixels before any is decoded: 10,000 × 10,000 pixels of one colour
 * are 20 KB as a PNG and 400 MB in memory. Only the first picture of an animation counts.
 */
export async function openPicture(path: string, mediaType: string, pixelsMax: number): Promise<Picture> {
  const input = await pictureInput(path, mediaType, pixelsMax);
  const options = { limitInputPixels: pixelsMax, failOn: "error", unlimited: false } as const;
  let meta;
  try {
    // Its own limit would refuse without saying the size.
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

/** What sharp can read of a picture: the file itself, but of a bitmap its pixels in another form. */
export async function pictureInput(
  path: string,
  mediaType: string,
  pixelsMax: number,
): Promise<string | Buffer> {
  return mediaType === "image/bmp" ? await decodeBitmap(path, pixelsMax) : path;
}

function refusePixels(widthPx: number, heightPx: number, pixelsMax: number): void {
  if (widthPx * heightPx > pixelsMax)
    throw new CappedRefusal<OcrFailure>("image_too_large", `${widthPx} × ${heightPx}`);
}

/** Where a Windows bitmap says its size: after the file's header of 14 bytes and the length of its own. */
const BITMAP_WIDTH_AT = 18;
const BITMAP_HEIGHT_AT = 22;

/** The one format of these that sharp does not read. */
async function decodeBitmap(path: string, pixelsMax: number): Promise<Buffer> {
  const bytes = await readFile(path);
  if (bytes.length < BITMAP_HEIGHT_AT + 4)
    throw new CappedRefusal<OcrFailure>("damaged_image", "the header is cut off");
  // A bitmap from the top down has a negative height.
  refusePixels(
    Math.abs(bytes.readInt32LE(BITMAP_WIDTH_AT)),
    Math.abs(bytes.readInt32LE(BITMAP_HEIGHT_AT)),
    pixelsMax,
  );
  try {
    const image = await loadImage(bytes);
    const canvas = createCanvas(image.width, image.height);
    canvas.getContext("2d").drawImage(image, 0, 0);
    return await canvas.encode("png");
  } catch (error) {
    throw new CappedRefusal<OcrFailure>("damaged_image", String(error));
  }
}

import { constants, setPriority } from "node:os";
import sharp from "sharp";
import { answerRequests, CappedRefusal, isOutOfMemory } from "../../lib/capped/child.ts";
import { messageOf } from "../../lib/failure.ts";
import { openPicture, pictureInput } from "../ingest/extract/ocr-picture.ts";

/** What the parent asks of an image. */
export interface ImageRequest {
  readonly path: string;
  readonly mediaType: string;
  readonly pixelsMax: number;
  /** Decode it and give it in the form that models take. */
  readonly render: boolean;
}

/** What an image is. */
export interface ImageFacts {
  /** As it is stored, before it is turned upright. */
  readonly widthPx: number;
  readonly heightPx: number;
  /** Pages of a TIFF; 1 of everything else. */
  readonly pages: number;
  /** Upright, within what models look at, without what a camera wrote into it. */
  readonly rendered?: RenderedImage;
}

/** An image in a form that every model takes. */
export interface RenderedImage {
  readonly mediaType: "image/png" | "image/jpeg";
  readonly bytes: Uint8Array;
}

/** Why an image is not taken. */
export type ImageFailure = "image_too_large" | "damaged_image" | "memory";

/** Models look at no more; larger ones only cost more to send. */
const SIDE_PX_MAX = 2048;
const JPEG_QUALITY = 90;
/** A larger PNG is a photograph after all: as a JPEG it takes a fifth, and as letters in a message a third more than that. */
const PNG_BYTES_MAX = 4 * 1024 * 1024;

// Reading a picture may take as long as it likes; searches may not.
setPriority(constants.priority.PRIORITY_LOW);

answerRequests<ImageRequest, ImageFacts, ImageFailure>(async (request, give) => {
  const { path, mediaType, pixelsMax } = request;
  const { widthPx, heightPx, pages } = await openPicture(path, mediaType, pixelsMax);
  give({ widthPx, heightPx, pages, ...(request.render ? { rendered: await render(request) } : {}) });
}, codeFor);

async function render({ path, mediaType, pixelsMax }: ImageRequest): Promise<RenderedImage> {
  const input = await pictureInput(path, mediaType, pixelsMax);
  const upright = sharp(input, { limitInputPixels: pixelsMax, failOn: "error" })
    .autoOrient()
    .resize({ width: SIDE_PX_MAX, height: SIDE_PX_MAX, fit: "inside", withoutEnlargement: true });
  // Photographs stay what they are: as a PNG one is ten times as large.
  const isPhoto = mediaType === "image/jpeg" || mediaType === "image/webp";
  const asJpeg = async (): Promise<RenderedImage> => ({
    mediaType: "image/jpeg",
    bytes: await upright
      .clone()
      .flatten({ background: "#ffffff" })
      .jpeg({ quality: JPEG_QUALITY })
      .toBuffer(),
  });
  try {
    if (isPhoto) return await asJpeg();
    const bytes = await upright.clone().png().toBuffer();
    return bytes.length > PNG_BYTES_MAX ? await asJpeg() : { mediaType: "image/png", bytes };
  } catch (error) {
    if (isOutOfMemory(messageOf(error))) throw error;
    throw new CappedRefusal<ImageFailure>("damaged_image", messageOf(error));
  }
}

function codeFor(error: unknown): ImageFailure {
  // Thrown here and in openPicture alone, with these codes.
  if (error instanceof CappedRefusal) return error.code as ImageFailure;
  return isOutOfMemory(messageOf(error)) ? "memory" : "damaged_image";
}

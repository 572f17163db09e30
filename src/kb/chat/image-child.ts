import sharp from "sharp";
import { answerRequests, CappedRefusal, isOutOfMemory } from "../../lib/capped/child.ts";
import { messageOf } from "../../lib/failure.ts";
import { openPicture, pictureInput } from "../ingest/extract/ocr-picture.ts";

/** A request of the parent process. */
export interface ImageRequest {
  readonly path: string;
  readonly mediaType: string;
  readonly pixelsMax: number;
  /** Also decode the image into a form that models accept. */
  readonly render: boolean;
}

/** The facts of an image. */
export interface ImageFacts {
  /** As stored, before rotation. */
  readonly widthPx: number;
  readonly heightPx: number;
  /** Pages of a TIFF; 1 for other formats. */
  readonly pages: number;
  /** Upright, at most as large as models accept, and without the camera's metadata. */
  readonly rendered?: RenderedImage;
}

/** An image in a form that every model accepts. */
export interface RenderedImage {
  readonly mediaType: "image/png" | "image/jpeg";
  readonly bytes: Uint8Array;
}

/** Why an image is refused. */
export type ImageFailure = "image_too_large" | "damaged_image" | "memory";

/** Models use no more pixels; larger images only cost more to send. */
const SIDE_PX_MAX = 2048;
const JPEG_QUALITY = 90;
/** A larger PNG is probably a photograph: as a JPEG it takes a fifth. Base64 in a message adds a third. */
const PNG_BYTES_MAX = 4 * 1024 * 1024;

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
  // A photograph stays a JPEG: as a PNG it is ten times as large.
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
  // Thrown only here and in openPicture, with these codes.
  if (error instanceof CappedRefusal) return error.code as ImageFailure;
  return isOutOfMemory(messageOf(error)) ? "memory" : "damaged_image";
}

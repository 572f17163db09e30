import { stat } from "node:fs/promises";
import { KbsyncError } from "../../../lib/failure.ts";
import { decodeTextFile, readHead } from "./text-file.ts";

/** Accepted media types. All text is `text/plain`, including markup and source code. */
export const MEDIA_TYPES = [
  "text/plain",
  "application/pdf",
  "image/png",
  "image/jpeg",
  "image/webp",
  "image/gif",
  "image/bmp",
  "image/tiff",
] as const;
export type MediaType = (typeof MEDIA_TYPES)[number];

/** Media types that file-type names differently. */
const OTHER_NAMES: ReadonlyMap<string, MediaType> = new Map([["image/apng", "image/png"]]);

const PDF_MARK = "%PDF-";
/** Bytes within which readers accept the PDF mark (Adobe's implementation notes; PDF.js does too). */
const PDF_HEAD_BYTES = 1024;

/**
 * Detects the media type of a file from its bytes alone, ignoring its name and declared type. Validates text to its end, in slices.
 * Throws `empty_file`, and `unsupported_media_type` with the detected type.
 */
export async function detectMediaType(path: string, signal?: AbortSignal): Promise<MediaType> {
  const { size: sizeBytes } = await stat(path);
  if (sizeBytes === 0) throw new KbsyncError("the file is empty", { code: "empty_file", subject: path });

  const head = Buffer.from(await readHead(path, PDF_HEAD_BYTES)).toString("latin1");
  if (head.startsWith(PDF_MARK)) return "application/pdf"; // before text: a PDF can be pure ASCII
  // Before images: some of their marks are plain letters ("BM", "GIF89a"), and a script that starts so is still text.
  if (await isText(path, signal)) return "text/plain";

  // Loaded with the first file that is no text: its 50 modules would delay each start.
  const { fileTypeFromFile } = await import("file-type");
  const found = await fileTypeFromFile(path, signal === undefined ? undefined : { signal });
  const mime = found === undefined ? undefined : (OTHER_NAMES.get(found.mime) ?? found.mime);
  const accepted = MEDIA_TYPES.find((type) => type === mime);
  if (accepted !== undefined && accepted !== "text/plain") return accepted;
  if (found === undefined && head.includes(PDF_MARK)) return "application/pdf";
  throw new KbsyncError(
    `this type of file is not accepted: found ${mime ?? "binary data of an unknown type, or text that is not UTF-8"}`,
    {
      code: "unsupported_media_type",
      subject: path,
      hint: "send PNG, JPEG, WebP, GIF, BMP, TIFF, PDF, or text in UTF-8 (or UTF-16 with a byte-order mark)",
    },
  );
}

async function isText(path: string, signal: AbortSignal | undefined): Promise<boolean> {
  const pieces = decodeTextFile(path, signal);
  for (;;) {
    const step = await pieces.next();
    if (step.done === true) return step.value === "text";
  }
}

import { createReadStream } from "node:fs";
import { open } from "node:fs/promises";
import { TextDecoder } from "node:util";
import { KbsyncError } from "../../../lib/failure.ts";

/** Encodings a text file may have. UTF-16 needs its byte-order mark; UTF-8 may have one. */
export type TextEncoding = "utf-8" | "utf-16le" | "utf-16be";

/** Read size: checking a slice takes well under a millisecond, so a large file never blocks the event loop. */
const SLICE_BYTES = 256 * 1024;

/** Returns the encoding by the byte-order mark in a file's first four bytes; UTF-8 without one. */
export function announcedEncoding(head: Uint8Array): TextEncoding {
  if (head[0] === 0xff && head[1] === 0xfe) return "utf-16le";
  if (head[0] === 0xfe && head[1] === 0xff) return "utf-16be";
  return "utf-8";
}

/**
 * Decodes a text file slice by slice, without its byte-order mark. Ends early with the return value "not-text" at the first invalid
 * byte, and at a NUL, which binary data has and text has not.
 */
export async function* decodeTextFile(
  path: string,
  signal: AbortSignal | undefined,
): AsyncGenerator<string, "text" | "not-text"> {
  const decoder = new TextDecoder(announcedEncoding(await readHead(path, 4)), { fatal: true });
  const slices = createReadStream(path, { highWaterMark: SLICE_BYTES, ...(signal && { signal }) });
  for await (const slice of slices) {
    const piece = decodeOrNothing(decoder, slice as Buffer); // no encoding is set, so slices are buffers
    if (piece === undefined) return "not-text";
    yield piece;
  }
  return decodeOrNothing(decoder, undefined) === undefined ? "not-text" : "text";
}

/** Reads a whole text file. Throws `unsupported_media_type` if it is not text, and `text_too_large`. */
export async function readTextFile(
  path: string,
  charsMax: number,
  signal: AbortSignal | undefined,
): Promise<string> {
  const pieces = decodeTextFile(path, signal);
  const read: string[] = [];
  let chars = 0;
  for (;;) {
    const step = await pieces.next();
    if (step.done === true) {
      if (step.value === "text") return read.join("");
      throw new KbsyncError("the file is not text: expected UTF-8, or UTF-16 with a byte-order mark", {
        code: "unsupported_media_type",
        subject: path,
      });
    }
    read.push(step.value);
    chars += step.value.length;
    if (chars > charsMax) {
      await pieces.return("text"); // closes the file
      throw textTooLarge(charsMax, path);
    }
  }
}

/** The error for a text that is longer than the limit. */
export function textTooLarge(charsMax: number, subject: string): KbsyncError {
  return new KbsyncError(`the text is longer than the limit of ${charsMax} characters`, {
    code: "text_too_large",
    subject,
    hint: "split the document",
  });
}

/** Reads the first bytes of a file, fewer if it is shorter. */
export async function readHead(path: string, bytes: number): Promise<Uint8Array> {
  await using file = await open(path);
  const { buffer, bytesRead } = await file.read(new Uint8Array(bytes), 0, bytes, 0);
  return buffer.subarray(0, bytesRead);
}

/** Decodes a slice, or the rest at the end. Undefined: it is not text. */
function decodeOrNothing(decoder: TextDecoder, slice: Uint8Array | undefined): string | undefined {
  try {
    const piece = slice === undefined ? decoder.decode() : decoder.decode(slice, { stream: true });
    return piece.includes("\0") ? undefined : piece;
  } catch (error) {
    if (error instanceof TypeError) return undefined; // a fatal decoder throws it for invalid bytes
    throw error;
  }
}

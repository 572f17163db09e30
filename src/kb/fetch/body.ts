import { Readable, pipeline } from "node:stream";
import type { Transform } from "node:stream";
import { createBrotliDecompress, createGunzip } from "node:zlib";
import { linkFailure } from "./link-failure.ts";

/** What we say we can read. */
export const ENCODINGS = "gzip, br";

/**
 * The bytes of an answer, unpacked, counted as they come: both those on the wire and those they unpack to may be
 * `bytesMax` at most, so that a packed bomb costs no more than that. Throws `link_failed`.
 */
export function answerBytes(
  wire: AsyncIterable<Uint8Array>,
  encoding: string | undefined,
  bytesMax: number,
): AsyncIterable<Uint8Array> {
  const unpack = unpacker(encoding);
  if (unpack === undefined) return counted(wire, bytesMax);
  const source = Readable.from(counted(wire, bytesMax), { objectMode: false });
  // What goes wrong on the way destroys the end of the pipe, whose reader hears of it.
  pipeline(source, unpack, () => undefined);
  return counted(readable(unpack), bytesMax);
}

function unpacker(encoding: string | undefined): Transform | undefined {
  switch (encoding?.trim().toLowerCase() ?? "") {
    case "":
    case "identity":
      return undefined;
    case "gzip":
    case "x-gzip":
      return createGunzip();
    case "br":
      return createBrotliDecompress();
    default:
      throw linkFailure("its answer is packed in a way that is not known here", encoding ?? "");
  }
}

async function* readable(unpack: Transform): AsyncGenerator<Uint8Array> {
  try {
    for await (const part of unpack) yield part as Buffer; // no encoding is set, so parts are buffers
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "";
    // zlib's own codes, and Brotli's behind Node's prefix.
    if (/^(?:Z_|ERR__ERROR_)/.test(code)) {
      throw linkFailure("its answer is packed and cannot be unpacked", code, error);
    }
    throw error;
  }
}

async function* counted(bytes: AsyncIterable<Uint8Array>, bytesMax: number): AsyncGenerator<Uint8Array> {
  let sizeBytes = 0;
  for await (const part of bytes) {
    sizeBytes += part.length;
    if (sizeBytes > bytesMax)
      throw linkFailure(`its answer is larger than ${bytesMax} bytes`, String(bytesMax));
    yield part;
  }
}

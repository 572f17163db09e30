import { Readable, pipeline } from "node:stream";
import type { Transform } from "node:stream";
import { createBrotliDecompress, createGunzip } from "node:zlib";
import { linkFailure } from "./link-failure.ts";

/** Value of the `accept-encoding` header. */
export const ENCODINGS = "gzip, br";

/**
 * Decompresses a response body. Limits both the compressed and the decompressed size to `bytesMax`, so that a decompression
 * bomb costs no more than that. Throws `link_failed`.
 */
export function answerBytes(
  wire: AsyncIterable<Uint8Array>,
  encoding: string | undefined,
  bytesMax: number,
): AsyncIterable<Uint8Array> {
  const decompressor = decompressorFor(encoding);
  if (decompressor === undefined) return limited(wire, bytesMax);
  const source = Readable.from(limited(wire, bytesMax), { objectMode: false });
  // An error in the pipeline destroys its last stream, whose reader gets the error.
  pipeline(source, decompressor, () => undefined);
  return limited(readable(decompressor), bytesMax);
}

function decompressorFor(encoding: string | undefined): Transform | undefined {
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
      throw linkFailure("the content encoding of its answer is not supported", encoding ?? "");
  }
}

async function* readable(decompressor: Transform): AsyncGenerator<Uint8Array> {
  try {
    for await (const part of decompressor) yield part as Buffer; // no encoding is set, so parts are buffers
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "";
    // zlib's own codes, and Brotli's behind Node's prefix.
    if (/^(?:Z_|ERR__ERROR_)/.test(code)) {
      throw linkFailure("its answer cannot be decompressed", code, error);
    }
    throw error;
  }
}

async function* limited(bytes: AsyncIterable<Uint8Array>, bytesMax: number): AsyncGenerator<Uint8Array> {
  let sizeBytes = 0;
  for await (const part of bytes) {
    sizeBytes += part.length;
    if (sizeBytes > bytesMax)
      throw linkFailure(`its answer is larger than ${bytesMax} bytes`, String(bytesMax));
    yield part;
  }
}

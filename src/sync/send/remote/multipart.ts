import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { liesInside, type FileLocation } from "../../scan/disk/file-location.ts";
import { LocalFailure } from "./transport.ts";

/** A file to upload, with what its bytes must still be. */
export interface UploadSource extends FileLocation {
  readonly name: string;
  readonly sizeBytes: number;
  readonly hash: string;
  readonly mediaType: string;
}

/** The file changed since it was hashed, or can no longer be read, so its upload was cancelled. */
export class TornFile extends LocalFailure {
  override readonly name = "TornFile";
}

/** At this size, disk and hash run at full speed. */
const SLICE_BYTES = 1024 * 1024;

/**
 * Creates a form that streams a file from disk (RFC 7578). Its length is known in advance, so nothing is buffered. The bytes
 * are hashed while they are sent; the last ones are sent only if the hash is `hash`.
 */
export function uploadBody(file: UploadSource) {
  // Equal bytes give an equal form, so a service that compares the body of a repeated request finds no difference. No file
  // contains its own hash.
  const boundary = `kbsync-${file.hash.slice(0, 32)}`;
  const head = Buffer.from(
    `--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="${quoted(file.name)}"\r\n` +
      `content-type: ${file.mediaType}\r\n\r\n`,
  );
  const tail = Buffer.from(`\r\n--${boundary}--\r\n`);
  return {
    contentType: `multipart/form-data; boundary=${boundary}`,
    contentLength: head.length + file.sizeBytes + tail.length,
    /**
     * The bytes as they are read; at most two slices are in memory. Throws `TornFile` if the file changed or cannot be
     * read.
     */
    chunks: stream(file, head, tail),
  };
}

async function* stream(
  file: UploadSource,
  head: Buffer,
  tail: Buffer,
): AsyncGenerator<Buffer, void, undefined> {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const handle = await open(join(file.root, file.path), flags).catch(torn);
  try {
    if (!liesInside(handle.fd, file)) throw new TornFile("the file lies elsewhere since it was read");
    yield head;
    const hasher = createHash("sha256");
    let sent = 0;
    while (sent < file.sizeBytes) {
      // A new slice each time: the last one may still be in flight.
      const slice = Buffer.allocUnsafe(Math.min(SLICE_BYTES, file.sizeBytes - sent));
      const { bytesRead } = await handle.read(slice, 0, slice.length, sent).catch(torn);
      if (bytesRead === 0) throw new TornFile("the file became shorter while it was sent");
      const bytes = slice.subarray(0, bytesRead);
      hasher.update(bytes);
      sent += bytesRead;
      if (sent === file.sizeBytes && hasher.copy().digest("hex") !== file.hash) {
        throw new TornFile("the file changed while it was sent");
      }
      yield bytes;
    }
    yield tail;
  } finally {
    await handle.close();
  }
}

/** A local read error is not the service's failure; the next check of the file finds the cause. */
function torn(cause: unknown): never {
  throw new TornFile("the file could not be read while it was sent", { cause });
}

/** Quotes a file name as browsers do: quotes and line ends percent-encoded (RFC 7578, section 2). */
function quoted(name: string): string {
  return name.toWellFormed().replaceAll('"', "%22").replaceAll("\r", "%0D").replaceAll("\n", "%0A");
}

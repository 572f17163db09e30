import { createHash } from "node:crypto";
import { chmodSync, closeSync, constants, copyFileSync, mkdirSync, openSync, readSync } from "node:fs";
import { dirname } from "node:path";
import { flush } from "../lib/durable-file.ts";

/** Bytes per read. */
const PIECE_BYTES = 1024 * 1024;

/** Size and hash of a file. */
export interface Digest {
  readonly bytes: number;
  readonly sha256: string;
}

/**
 * Copies a file to a new one with mode 0600, flushes it and returns the digest of the copy. Uses copy-on-write where the
 * file system supports it. Throws the file system's errors.
 */
export function copyDurably(from: string, to: string): Digest {
  mkdirSync(dirname(to), { recursive: true, mode: 0o700 });
  copyFileSync(from, to, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
  chmodSync(to, 0o600);
  flush(to);
  return digestOf(to);
}

/** Computes the digest of a file. */
export function digestOf(path: string): Digest {
  const file = openSync(path, "r");
  try {
    const hash = createHash("sha256");
    const buffer = Buffer.allocUnsafe(PIECE_BYTES);
    let bytes = 0;
    for (;;) {
      const read = readSync(file, buffer);
      if (read === 0) return { bytes, sha256: hash.digest("hex") };
      const piece = buffer.subarray(0, read);
      hash.update(piece);
      bytes += read;
    }
  } finally {
    closeSync(file);
  }
}

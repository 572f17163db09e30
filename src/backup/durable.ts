import { createHash } from "node:crypto";
import {
  closeSync,
  constants,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";
import { codeOf } from "../lib/failure.ts";

/** Bytes read at once. */
const PIECE_BYTES = 1024 * 1024;

/** Size and hash of what was read. */
export interface Digest {
  readonly bytes: number;
  readonly sha256: string;
}

/** Copies a file to a new one, for this user alone, and flushes it; tells what was copied. Throws the disk's own errors. */
export function copyDurably(from: string, to: string): Digest {
  mkdirSync(dirname(to), { recursive: true, mode: 0o700 });
  const out = openSync(to, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600);
  try {
    const digest = digestOf(from, (piece) => {
      for (let at = 0; at < piece.length;) at += writeSync(out, piece, at);
    });
    fsyncSync(out);
    return digest;
  } finally {
    closeSync(out);
  }
}

/**
 * Puts a file under a second name where both lie on one disk, else copies it. For files that are never written to again.
 * Tells what it read either way.
 */
export function linkOrCopy(from: string, to: string): Digest {
  mkdirSync(dirname(to), { recursive: true, mode: 0o700 });
  try {
    linkSync(from, to);
  } catch (error) {
    // Another disk, or one that knows no second names, or a file that is not ours.
    if (!["EXDEV", "EPERM", "EMLINK", "ENOTSUP", "EOPNOTSUPP"].includes(codeOf(error) ?? "")) throw error;
    return copyDurably(from, to);
  }
  return digestOf(to, () => undefined);
}

/** Reads a file to its end. */
export function digestOf(path: string, onPiece: (piece: Buffer) => void): Digest {
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
      onPiece(piece);
      bytes += read;
    }
  } finally {
    closeSync(file);
  }
}

/** Flushes a folder: names that were made, changed or removed in it outlive a power cut from here on. */
export function syncFolder(folder: string): void {
  const file = openSync(folder, "r");
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

/** Writes a small file whole and flushed; the caller makes its name durable. */
export function writeDurably(path: string, text: string): void {
  const file = openSync(path, constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC, 0o600);
  try {
    // Not writeSync: on a disk that is nearly full one such write takes a part and says so by its count alone.
    writeFileSync(file, text);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

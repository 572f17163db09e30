import { closeSync, fsyncSync, openSync, renameSync, writeFileSync } from "node:fs";

/**
 * Flushes a file, or a folder: names that were made, changed or removed in a folder survive a power cut from here on.
 * A descriptor for reading does for both (fsync(2) on Linux).
 */
export function flush(path: string): void {
  const handle = openSync(path, "r");
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

/**
 * Replaces a small file, for this user alone: written under another name, flushed and renamed, so that a reader finds
 * the old text or the new one. The name itself is durable once its folder is flushed. Throws the disk's own errors.
 */
export function writeDurably(path: string, text: string): void {
  const beside = `${path}.${process.pid}.new`;
  // Not writeSync: on a disk that is nearly full one such write takes a part and reports that by its count alone.
  writeFileSync(beside, text, { mode: 0o600, flush: true });
  renameSync(beside, path);
}

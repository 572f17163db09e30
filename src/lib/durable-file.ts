import { closeSync, fsyncSync, openSync, renameSync, writeFileSync } from "node:fs";

/**
 * Flushes a file or a folder. After a folder's flush, names created, changed or removed in it survive a power cut. A
 * descriptor opened for reading suffices for both (fsync(2) on Linux).
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
 * Replaces a small file atomically, with mode 0600: writes a temporary file, flushes it and renames it, so a reader finds
 * the old text or the new one. The name is durable once its folder is flushed. Throws the file system's errors.
 */
export function writeDurably(path: string, text: string): void {
  const temporary = `${path}.${process.pid}.new`;
  // Not writeSync: on a nearly full disk it writes a part and reports that only by the count it returns.
  writeFileSync(temporary, text, { mode: 0o600, flush: true });
  renameSync(temporary, path);
}

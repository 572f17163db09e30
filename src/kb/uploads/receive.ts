import { createHash } from "node:crypto";
import { open, rm, type FileHandle } from "node:fs/promises";
import type { Received } from "./file-store.ts";

/**
 * Writes a stream to a new file, and measures it. `isDurable`: the file survives the loss of power. Leaves no file if it throws, unless
 * the file was there before.
 */
export async function writeReceived(
  path: string,
  bytes: AsyncIterable<Uint8Array>,
  bytesMax: number,
  tooLarge: () => Error,
  isDurable: boolean,
): Promise<Pick<Received, "sizeBytes" | "sha256">> {
  const file = await open(path, "wx", 0o600);
  try {
    const digest = createHash("sha256");
    let sizeBytes = 0;
    for await (const part of bytes) {
      sizeBytes += part.length;
      if (sizeBytes > bytesMax) throw tooLarge();
      digest.update(part);
      await writeAll(file, part);
    }
    if (isDurable) await file.sync();
    return { sizeBytes, sha256: digest.digest("hex") };
  } catch (error) {
    await rm(path, { force: true });
    throw error;
  } finally {
    await file.close();
  }
}

/** Repeats the write, because one call may write only a part. */
async function writeAll(file: FileHandle, part: Uint8Array): Promise<void> {
  let written = 0;
  while (written < part.length) {
    const { bytesWritten } = await file.write(part, written, part.length - written);
    written += bytesWritten;
  }
}

import { createHash } from "node:crypto";
import { mkdir, open, rename, rm, type FileHandle } from "node:fs/promises";
import { join } from "node:path";

/** A file that is being written into the trash folder. */
export interface TrashWriter {
  write(piece: Buffer): Promise<void>;
  /** Makes it durable under its name. */
  finish(): Promise<{ readonly hash: string; readonly sizeBytes: number }>;
  /** Leaves nothing behind; harmless after `finish`. */
  drop(): Promise<void>;
}

/** End of the name of a file that is still being written; what a crash leaves of them is pruned. */
export const UNFINISHED = ".new";

/**
 * Opens a file of the trash folder, for this user alone. Written beside, flushed and renamed, the folder flushed as well:
 * its name stands for a whole text, through a power cut too.
 */
export async function openTrashWriter(folder: string, name: string): Promise<TrashWriter> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, name);
  const beside = `${path}${UNFINISHED}`;
  const hash = createHash("sha256");
  let file: FileHandle | undefined = await open(beside, "w", 0o600);
  let sizeBytes = 0;
  const close = async (): Promise<void> => {
    const written = file;
    file = undefined;
    await written?.close();
  };
  return {
    write: async (piece) => {
      await file?.writeFile(piece);
      hash.update(piece);
      sizeBytes += piece.length;
    },
    finish: async () => {
      await file?.sync();
      await close();
      await rename(beside, path);
      const above = await open(folder, "r");
      try {
        await above.sync();
      } finally {
        await above.close();
      }
      return { hash: hash.digest("hex"), sizeBytes };
    },
    drop: async () => {
      await close().catch(() => undefined);
      await rm(beside, { force: true });
    },
  };
}

import { createHash } from "node:crypto";
import { mkdir, open, rename, rm, type FileHandle } from "node:fs/promises";
import { join } from "node:path";

/** A file that is being written to the trash folder. */
export type TrashWriter = Awaited<ReturnType<typeof openTrashWriter>>;

/** Suffix of a file that is still being written. Pruning removes what a crash leaves. */
export const UNFINISHED = ".new";

/**
 * Opens a file of the trash folder, for this user alone. The file is written under a temporary name, flushed and renamed, and
 * the folder is flushed too, so a file under its final name is complete even after a power failure.
 */
export async function openTrashWriter(folder: string, name: string) {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, name);
  const temporary = `${path}${UNFINISHED}`;
  const hash = createHash("sha256");
  let file: FileHandle | undefined = await open(temporary, "w", 0o600);
  let sizeBytes = 0;
  const close = async (): Promise<void> => {
    const written = file;
    file = undefined;
    await written?.close();
  };
  return {
    write: async (piece: Buffer): Promise<void> => {
      await file?.writeFile(piece);
      hash.update(piece);
      sizeBytes += piece.length;
    },
    /** Makes the file durable under its name. */
    finish: async (): Promise<{ readonly hash: string; readonly sizeBytes: number }> => {
      await file?.sync();
      await close();
      await rename(temporary, path);
      const above = await open(folder, "r");
      try {
        await above.sync();
      } finally {
        await above.close();
      }
      return { hash: hash.digest("hex"), sizeBytes };
    },
    /** Removes an unfinished file. Does nothing after `finish`. */
    drop: async (): Promise<void> => {
      await close().catch(() => undefined);
      await rm(temporary, { force: true });
    },
  };
}

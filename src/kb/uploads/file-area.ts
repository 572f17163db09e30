import { createHash } from "node:crypto";
import type { FileHandle } from "node:fs/promises";
import { mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { codeOf } from "../../lib/failure.ts";

/** A complete and synced file in `incoming/`. */
export interface Received {
  readonly token: string;
  readonly path: string;
  readonly sizeBytes: number;
  /** 64 hex digits. */
  readonly sha256: string;
}

/**
 * The folder of uploaded files. Each file is named by its token; new files stay in `incoming/` until the store has recorded
 * them. A crash leaves at most files in `incoming/`, which the next start recovers.
 */
export interface FileArea {
  /** Writes a stream to `incoming/`. Throws `tooLarge()` once it exceeds `bytesMax`, and then leaves no file. */
  receive(
    token: string,
    bytes: AsyncIterable<Uint8Array>,
    bytesMax: number,
    tooLarge: () => Error,
  ): Promise<Received>;
  /**
   * Moves a received file out of `incoming/`. After it resolves, the file survives a power failure. If it throws, the file
   * has not moved.
   */
  keep(token: string): Promise<void>;
  /** Runs work that needs a file, which is not removed meanwhile. */
  use<T>(token: string, work: () => Promise<T>): Promise<T>;
  /**
   * Removes a file that is not in use, if `forget` removes its row; reports whether it did. The file moves to `incoming/` before
   * the row is removed, and is deleted after it: a crash in between leaves it where the next start recovers it.
   */
  remove(token: string, forget: () => Promise<boolean>): Promise<boolean>;
  /** Removes a received file that is not wanted. Does nothing if it has moved or is gone. */
  discard(token: string): Promise<void>;
  /** Reports whether a file exists outside `incoming/`. */
  holds(token: string): Promise<boolean>;
  /** The path of a file outside `incoming/`. */
  path(token: string): string;
  /**
   * Recovers what a crash left in `incoming/`: moves files that the store has recorded, and removes the others. Returns how many
   * there were. Call it only before the first `receive`.
   */
  recover(isRecorded: (token: string) => Promise<boolean>): Promise<number>;
}

/** Opens the area in `folder`, which is created if missing and readable only by its owner. */
export async function openFileArea(folder: string): Promise<FileArea> {
  const incoming = join(folder, "incoming");
  await mkdir(incoming, { recursive: true, mode: 0o700 });

  const keep = async (token: string): Promise<void> => {
    await rename(join(incoming, token), join(folder, token));
    // Without this sync a power failure may lose the name although the content is on disk.
    const directory = await open(folder, "r");
    try {
      await directory.sync();
    } finally {
      await directory.close();
    }
  };
  const discard = (token: string): Promise<void> =>
    rm(join(incoming, token), { force: true, recursive: true });

  const moveToIncoming = async (token: string): Promise<void> => {
    try {
      await rename(join(folder, token), join(incoming, token));
    } catch (error) {
      if (codeOf(error) !== "ENOENT") throw error;
    }
  };

  return {
    ...openUses(async (token, forget) => {
      await moveToIncoming(token);
      const isForgotten = await forget();
      await (isForgotten ? discard(token) : keep(token));
      return isForgotten;
    }),
    path: (token) => join(folder, token),
    holds: async (token) => {
      try {
        return (await stat(join(folder, token))).isFile();
      } catch (error) {
        if (codeOf(error) === "ENOENT") return false;
        throw error;
      }
    },
    keep,
    discard,
    receive: async (token, bytes, bytesMax, tooLarge) => {
      const path = join(incoming, token);
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
        await file.sync();
        return { token, path, sizeBytes, sha256: digest.digest("hex") };
      } catch (error) {
        await discard(token);
        throw error;
      } finally {
        await file.close();
      }
    },

    recover: async (isRecorded) => {
      const tokens = await readdir(incoming);
      for (const token of tokens) {
        if (await isRecorded(token)) await keep(token);
        else await discard(token);
      }
      return tokens.length;
    },
  };
}

/** Counts the uses of each file. A file in use is not removed, and a use waits for a removal in progress. */
function openUses(removeFile: FileArea["remove"]): Pick<FileArea, "use" | "remove"> {
  /** How many uses each file has. */
  const uses = new Map<string, number>();
  /** Removals in progress. */
  const removals = new Map<string, Promise<boolean>>();

  return {
    use: async (token, work) => {
      // Counts first, so that a later removal sees the use.
      uses.set(token, (uses.get(token) ?? 0) + 1);
      try {
        // The work itself checks whether the file is gone.
        await removals.get(token)?.catch(() => undefined);
        return await work();
      } finally {
        const left = (uses.get(token) ?? 1) - 1;
        if (left === 0) uses.delete(token);
        else uses.set(token, left);
      }
    },
    remove: async (token, forget) => {
      if (uses.has(token) || removals.has(token)) return false;
      const removal = removeFile(token, forget);
      removals.set(token, removal);
      try {
        return await removal;
      } finally {
        removals.delete(token);
      }
    },
  };
}

/** Repeats the write, because one call may write only a part. */
async function writeAll(file: FileHandle, part: Uint8Array): Promise<void> {
  let written = 0;
  while (written < part.length) {
    const { bytesWritten } = await file.write(part, written, part.length - written);
    written += bytesWritten;
  }
}

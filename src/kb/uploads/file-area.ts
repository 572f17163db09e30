import { createHash } from "node:crypto";
import type { FileHandle } from "node:fs/promises";
import { mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { codeOf } from "../../lib/failure.ts";

/** Bytes on the disk, whole and synced, still in `incoming/`. */
export interface Received {
  readonly token: string;
  readonly path: string;
  readonly sizeBytes: number;
  /** 64 hex digits. */
  readonly sha256: string;
}

/**
 * The folder of uploaded files: each lies under its token, arriving ones in `incoming/` until the store has noted
 * them. A crash leaves at most files in `incoming/`, which the next start puts right.
 */
export interface FileArea {
  /** Writes a stream to the disk. Throws `tooLarge()` once it is longer than `bytesMax`; then nothing stays. */
  receive(
    token: string,
    bytes: AsyncIterable<Uint8Array>,
    bytesMax: number,
    tooLarge: () => Error,
  ): Promise<Received>;
  /**
   * Moves received bytes to their place. When it resolves the file outlives a power cut; when it throws they are where
   * they were.
   */
  keep(token: string): Promise<void>;
  /** Does work that needs a file to stay: it is not removed meanwhile. */
  use<T>(token: string, work: () => Promise<T>): Promise<T>;
  /**
   * Removes a kept file that is not in use, where `forget` takes its row away; answers whether it did. The bytes go aside
   * before the row goes, and for good after it: a crash in between leaves them where the next start looks.
   */
  remove(token: string, forget: () => Promise<boolean>): Promise<boolean>;
  /** Removes received bytes that are not wanted. Does nothing when they are kept or gone. */
  discard(token: string): Promise<void>;
  /** Whether the bytes of a kept file are there. */
  holds(token: string): Promise<boolean>;
  /** Where the bytes of a kept file lie. */
  path(token: string): string;
  /**
   * Puts right what a crash left in `incoming/`: files that the store has noted are kept, the others removed.
   * Returns how many there were. Only before the first `receive`.
   */
  recover(isNoted: (token: string) => Promise<boolean>): Promise<number>;
}

/** Opens the area in `folder`, which is made when missing, readable for the owner alone. */
export async function openFileArea(folder: string): Promise<FileArea> {
  const incoming = join(folder, "incoming");
  await mkdir(incoming, { recursive: true, mode: 0o700 });

  const keep = async (token: string): Promise<void> => {
    await rename(join(incoming, token), join(folder, token));
    // Without this the name may be lost in a power cut, though the bytes are there.
    const directory = await open(folder, "r");
    try {
      await directory.sync();
    } finally {
      await directory.close();
    }
  };
  const discard = (token: string): Promise<void> =>
    rm(join(incoming, token), { force: true, recursive: true });

  /** How much work needs a file. */
  const used = new Map<string, number>();
  /** Files that are being removed. */
  const going = new Map<string, Promise<boolean>>();
  const release = async (token: string): Promise<void> => {
    try {
      await rename(join(folder, token), join(incoming, token));
    } catch (error) {
      if (codeOf(error) !== "ENOENT") throw error;
    }
  };
  const takeAway = async (token: string, forget: () => Promise<boolean>): Promise<boolean> => {
    await release(token);
    const isForgotten = await forget();
    await (isForgotten ? discard(token) : keep(token));
    return isForgotten;
  };

  return {
    use: async (token, work) => {
      // Counted first: what begins to be removed later sees it.
      used.set(token, (used.get(token) ?? 0) + 1);
      try {
        // Whether it went is for the work to find out.
        await going.get(token)?.catch(() => undefined);
        return await work();
      } finally {
        const left = (used.get(token) ?? 1) - 1;
        if (left === 0) used.delete(token);
        else used.set(token, left);
      }
    },
    remove: async (token, forget) => {
      if (used.has(token) || going.has(token)) return false;
      const removal = takeAway(token, forget);
      going.set(token, removal);
      try {
        return await removal;
      } finally {
        going.delete(token);
      }
    },
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

    recover: async (isNoted) => {
      const tokens = await readdir(incoming);
      for (const token of tokens) {
        if (await isNoted(token)) await keep(token);
        else await discard(token);
      }
      return tokens.length;
    },
  };
}

/** A write may take less than it was given. */
async function writeAll(file: FileHandle, part: Uint8Array): Promise<void> {
  let written = 0;
  while (written < part.length) {
    const { bytesWritten } = await file.write(part, written, part.length - written);
    written += bytesWritten;
  }
}

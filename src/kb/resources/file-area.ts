import { createHash } from "node:crypto";
import type { FileHandle } from "node:fs/promises";
import { access, mkdir, open, readdir, rename, rm } from "node:fs/promises";
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
  /** Moves received bytes to their place. When it resolves the file outlives a power cut. */
  keep(token: string): Promise<void>;
  /** Puts kept bytes aside, among the received ones. Does nothing when they are gone. */
  release(token: string): Promise<void>;
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

  return {
    path: (token) => join(folder, token),
    holds: async (token) => {
      try {
        await access(join(folder, token));
        return true;
      } catch (error) {
        if (codeOf(error) === "ENOENT") return false;
        throw error;
      }
    },
    keep,
    discard,
    release: async (token) => {
      try {
        await rename(join(folder, token), join(incoming, token));
      } catch (error) {
        if (codeOf(error) !== "ENOENT") throw error;
      }
    },

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

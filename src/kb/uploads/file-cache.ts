import { existsSync } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { join } from "node:path";
import type { FileKey } from "./file-store.ts";

/** Time for which a file stays after its last use: viewers of a PDF, for example, ask for one range after another. */
const IDLE_MS = 10 * 60 * 1000;
/** Most files that nothing uses: each has a name on the disk and a timer. */
const IDLE_MAX = 10_000;

export interface FileCacheOptions {
  /** An empty folder that this process alone uses. */
  readonly folder: string;
  /** Most bytes of files that nothing uses. What is in use comes on top. */
  readonly bytesMax: number;
  /** Writes the verified content of a file to a new path. Leaves nothing there if it throws. */
  readonly fetch: (file: FileKey, path: string) => Promise<void>;
}

/** Copies of files on the local disk. Each is fetched once, however many ask for it at a time. */
export interface FileCache {
  /** Runs work that reads a file at a path, which is valid until the work ends. */
  use<T>(file: FileKey, work: (path: string) => Promise<T>): Promise<T>;
  /** Takes over a file of the same disk. Its content is that of the token. */
  adopt(token: string, path: string, sizeBytes: number): Promise<void>;
  /** Removes a copy as soon as nothing uses it. */
  drop(token: string): Promise<void>;
}

interface Copy {
  readonly path: string;
  readonly sizeBytes: number;
  readonly ready: Promise<void>;
  users: number;
  timer?: NodeJS.Timeout;
}

/** Opens an empty cache. */
export function openFileCache({ folder, bytesMax, fetch }: FileCacheOptions): FileCache {
  const copies = new Map<string, Copy>();
  /** The copies that nothing uses, the least recently used first. */
  const idle = new Map<string, Copy>();
  let idleBytes = 0;
  let made = 0;
  // A new copy of a file never meets the path of an earlier one that is still in use.
  const newPath = (token: string): string => join(folder, `${token}.${++made}`);

  const wake = (token: string, copy: Copy): void => {
    if (idle.get(token) !== copy) return;
    clearTimeout(copy.timer);
    idle.delete(token);
    idleBytes -= copy.sizeBytes;
  };
  const forget = async (token: string, copy: Copy): Promise<void> => {
    wake(token, copy);
    if (copies.get(token) === copy) copies.delete(token);
    if (copy.users === 0) await rm(copy.path, { force: true });
  };
  const rest = async (token: string, copy: Copy): Promise<void> => {
    if (copies.get(token) !== copy) return forget(token, copy);
    idle.set(token, copy);
    idleBytes += copy.sizeBytes;
    // A copy that cannot be removed stays until the next start, which removes all.
    copy.timer = setTimeout(() => void forget(token, copy).catch(() => undefined), IDLE_MS).unref();
    for (const [oldest, each] of idle) {
      if (idleBytes <= bytesMax && idle.size <= IDLE_MAX) break;
      await forget(oldest, each);
    }
  };
  const found = (file: FileKey): Copy => {
    const { token, sizeBytes } = file;
    const copy = copies.get(token);
    // If someone emptied the folder, the file itself is not gone.
    if (copy !== undefined && (!idle.has(token) || existsSync(copy.path))) return copy;
    if (copy !== undefined) wake(token, copy);
    const path = newPath(token);
    const fetched = { path, sizeBytes, ready: fetch(file, path), users: 0 };
    copies.set(token, fetched);
    return fetched;
  };

  return {
    use: async (file, work) => {
      const { token } = file;
      const copy = found(file);
      wake(token, copy);
      copy.users += 1;
      try {
        await copy.ready.catch((error: unknown) => {
          if (copies.get(token) === copy) copies.delete(token);
          throw error;
        });
        return await work(copy.path);
      } finally {
        copy.users -= 1;
        if (copy.users === 0) await rest(token, copy);
      }
    },
    adopt: async (token, path, sizeBytes) => {
      const target = newPath(token);
      await rename(path, target);
      const earlier = copies.get(token);
      if (earlier !== undefined) await forget(token, earlier);
      const copy = { path: target, sizeBytes, ready: Promise.resolve(), users: 0 };
      copies.set(token, copy);
      await rest(token, copy);
    },
    drop: async (token) => {
      const copy = copies.get(token);
      if (copy !== undefined) await forget(token, copy);
    },
  };
}

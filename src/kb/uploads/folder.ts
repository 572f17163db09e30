import { randomUUID } from "node:crypto";
import { mkdir, open, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { codeOf, KbsyncError } from "../../lib/failure.ts";
import { saysFull } from "../../lib/full-disk.ts";
import { LEFTOVER_MS, type FileStore } from "./file-store.ts";
import { writeReceived } from "./receive.ts";
import { openUses } from "./uses.ts";

/** End of the name of an empty file in `incoming/` whose token is being removed. */
const REMOVAL = ".removal";
/** Content of the file of a probe. */
const PROBE = "kbsync";

export interface FolderOptions {
  /** Created if missing, readable only by its owner. */
  readonly folder: string;
  /** Whether other processes use the folder too. Then leftovers are known by their age. Default false. */
  readonly isShared?: boolean;
  readonly nowMs?: () => number;
}

/**
 * Opens a store of files in a folder. Each file is named by its token; new files stay in `incoming/` until they are recorded.
 */
export async function openFolder(options: FolderOptions): Promise<FileStore> {
  const { folder, isShared = false, nowMs = Date.now } = options;
  const incoming = join(folder, "incoming");
  await mkdir(incoming, { recursive: true, mode: 0o700 });
  /** Names in `incoming/` that this process works on. */
  const inFlight = new Set<string>();
  const publishedPath = (token: string): string => join(folder, token);
  const holds = (token: string): Promise<boolean> => isFile(publishedPath(token));

  const publish = async (token: string): Promise<void> => {
    try {
      await rename(join(incoming, token), publishedPath(token));
    } catch (error) {
      // Another process may have published it: its `recover`, or an attempt of the same request.
      if (codeOf(error) !== "ENOENT" || !(await holds(token))) throw error;
    }
    inFlight.delete(token);
    await flushNames(folder);
  };
  const discard = async (token: string): Promise<void> => {
    await rm(join(incoming, token), { force: true, recursive: true });
    inFlight.delete(token);
  };
  const removeBytes = async (token: string): Promise<void> => {
    await rm(join(incoming, token), { force: true, recursive: true });
    await rm(publishedPath(token), { force: true, recursive: true });
  };
  const isAtWork = async (name: string): Promise<boolean> => {
    if (inFlight.has(name)) return true;
    return isShared && nowMs() - (await changedMs(join(incoming, name))) < LEFTOVER_MS;
  };
  const uses = openUses(async (token, forget) => {
    // A crash after the row is gone leaves the mark, by which `recover` removes the file.
    const mark = `${token}${REMOVAL}`;
    inFlight.add(mark);
    try {
      await touch(join(incoming, mark));
      const isForgotten = await forget();
      if (isForgotten) await removeBytes(token);
      await rm(join(incoming, mark), { force: true });
      return isForgotten;
    } finally {
      inFlight.delete(mark);
    }
  });

  return {
    ...uses,
    use: (file, work) => uses.hold(file.token, () => work(publishedPath(file.token))),
    holds,
    close: () => undefined,
    publish,
    discard,
    // A received file is durable already.
    save: async () => undefined,
    abandon: (token) => void inFlight.delete(token),
    receive: async (token, bytes, bytesMax, tooLarge) => {
      const path = join(incoming, token);
      const isNew = !inFlight.has(token);
      inFlight.add(token);
      try {
        return { token, path, ...(await writeReceived(path, bytes, bytesMax, tooLarge, true)) };
      } catch (error) {
        if (isNew) inFlight.delete(token);
        throw error;
      }
    },
    recover: async (isRecorded) => {
      let recovered = 0;
      for (const name of await readdir(incoming)) {
        const isRemoval = name.endsWith(REMOVAL);
        const token = isRemoval ? name.slice(0, -REMOVAL.length) : name;
        const isKnown = await isRecorded(token);
        if (isKnown && !isRemoval) await publishIfThere(publish, token);
        else if (await isAtWork(name)) continue;
        else {
          if (!isKnown) await removeBytes(token);
          await rm(join(incoming, name), { force: true, recursive: true });
        }
        recovered += 1;
      }
      return recovered;
    },
  };
}

/** Publishes a file that another process may publish or remove at the same time. */
async function publishIfThere(publish: FileStore["publish"], token: string): Promise<void> {
  try {
    await publish(token);
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw error;
  }
}

/** Without this a power failure may lose the name of a renamed file although the content is on disk. */
async function flushNames(folder: string): Promise<void> {
  const directory = await open(folder, "r");
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

async function isFile(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isFile();
  } catch (error) {
    if (codeOf(error) === "ENOENT") return false;
    throw error;
  }
}

/** Returns when a file was last written or named; now, if it is gone. */
async function changedMs(path: string): Promise<number> {
  try {
    const { mtimeMs, ctimeMs } = await stat(path);
    return Math.max(mtimeMs, ctimeMs);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return Infinity;
    throw error;
  }
}

/** Creates an empty file. A full disk takes none, and then a removal, which frees space, goes on without its mark. */
async function touch(path: string): Promise<void> {
  try {
    await writeFile(path, "", { mode: 0o600 });
  } catch (error) {
    if (!saysFull(error)) throw error;
  }
}

/** Writes, reads and removes a small file, in a folder that processes share. Throws if that fails. */
export async function probeFolder(folder: string): Promise<void> {
  const incoming = join(folder, "incoming");
  await mkdir(incoming, { recursive: true, mode: 0o700 });
  const path = join(incoming, `probe-${randomUUID()}`);
  try {
    await writeFile(path, PROBE, { flag: "wx", mode: 0o600 });
    const read = await readFile(path, "utf8");
    if (read === PROBE) return;
    throw new KbsyncError(`${path} has other content than was written to it`, {
      code: "probe_failed",
      subject: path,
    });
  } finally {
    await rm(path, { force: true });
  }
}

import { randomUUID } from "node:crypto";
import { mkdir, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { codeOf } from "../../lib/failure.ts";
import { openBucket, type Bucket, type BucketOptions } from "./bucket.ts";
import { damaged, gone, TransferBroken } from "./bucket-failure.ts";
import { openFileCache } from "./file-cache.ts";
import { LEFTOVER_MS, type FileKey, type FileStore, type Received } from "./file-store.ts";
import { writeReceived } from "./receive.ts";
import { openUses } from "./uses.ts";

export interface S3Options extends BucketOptions {
  /** Folder for copies of files. This process alone uses it, and everything in it is removed. */
  readonly cacheFolder: string;
  /** Most bytes of copies that nothing uses. Default 1 GB. */
  readonly cacheBytesMax?: number;
  /** Reports failures of the bucket, before they are thrown, and those that do not matter to the caller. */
  readonly onProblem: (error: unknown) => void;
  readonly nowMs?: () => number;
}

const CACHE_BYTES_MAX = 1024 * 1024 * 1024;
/** Attempts to fetch a file whose content arrives incomplete or altered: the cause may lie between the bucket and here. */
const FETCHES_MAX = 3;
/** Marks that one recovery reads. More are left to the next. */
const MARKS_MAX = 100_000;
/** Begins the keys of marks: empty objects that name the files in flight. */
const MARKS = "incoming/";
const PROBE = "kbsync";

/**
 * Opens a store of files in a bucket. Each object is named by its token. A mark precedes each object, and goes after the row is
 * committed; a removal is marked likewise. So leftovers are known without a list of all objects, and an object without a mark is never
 * removed, even if the service asks the wrong database.
 */
export async function openS3(options: S3Options): Promise<FileStore> {
  const { cacheFolder, cacheBytesMax = CACHE_BYTES_MAX, nowMs = Date.now } = options;
  await rm(cacheFolder, { recursive: true, force: true });
  const [scratch, copies] = [join(cacheFolder, "incoming"), join(cacheFolder, "files")];
  for (const folder of [scratch, copies]) await mkdir(folder, { recursive: true, mode: 0o700 });
  const opened = await openBucket(options);
  const bucket = reported(opened, options.onProblem);
  const cache = openFileCache({
    folder: copies,
    bytesMax: cacheBytesMax,
    fetch: (file, path) => fetchFile(bucket, file, path),
  });
  /** Received files that were neither published nor discarded. */
  const received = new Map<string, Received & { readonly savedMs?: number }>();
  const marked = new Set<string>();

  const mark = async (token: string): Promise<void> => {
    marked.add(token);
    await bucket.put(`${MARKS}${token}`, "");
  };
  const unmark = async (token: string): Promise<void> => {
    await bucket.delete(`${MARKS}${token}`);
    marked.delete(token);
  };
  const release = async (token: string): Promise<void> => {
    received.delete(token);
    marked.delete(token);
    await rm(join(scratch, token), { force: true });
  };
  const uses = openUses(async (token, forget) => {
    await mark(token);
    try {
      const isForgotten = await forget();
      if (isForgotten) {
        await bucket.delete(token);
        await cache.drop(token);
      }
      // A mark that stays costs a check by `recover`.
      await unmark(token).catch(() => undefined);
      return isForgotten;
    } finally {
      marked.delete(token);
    }
  });

  return {
    ...uses,
    use: (file, work) => uses.hold(file.token, () => cache.use(file, work)),
    holds: (token) => bucket.has(token),
    close: () => opened.close(),
    receive: async (token, bytes, bytesMax, tooLarge) => {
      const path = join(scratch, token);
      // Not flushed: until it is saved, nobody relies on it.
      const file = { token, path, ...(await writeReceived(path, bytes, bytesMax, tooLarge, false)) };
      received.set(token, file);
      return file;
    },
    save: async (token) => {
      const file = received.get(token);
      if (file === undefined) throw new Error("a file was saved that was not received");
      await mark(token);
      await bucket.putFile(token, file.path, file.sizeBytes);
      received.set(token, { ...file, savedMs: nowMs() });
    },
    publish: async (token) => {
      const file = received.get(token);
      // A process that was stopped for long may find that another one has removed its file.
      const isSure = file?.savedMs !== undefined && nowMs() - file.savedMs < LEFTOVER_MS / 2;
      if (!isSure && !(await bucket.has(token))) throw gone(token);
      await unmark(token).catch(() => undefined);
      if (file !== undefined) await cache.adopt(token, file.path, file.sizeBytes);
      await release(token);
    },
    // An object that was saved is left to `recover`, as nobody waits for its removal.
    discard: release,
    abandon: (token) => void release(token).catch(options.onProblem),
    recover: async (isRecorded) => {
      let recovered = 0;
      for (const { key, modifiedMs } of await bucket.list(MARKS, MARKS_MAX)) {
        const token = key.slice(MARKS.length);
        if (token === "" || marked.has(token) || nowMs() - modifiedMs < LEFTOVER_MS) continue;
        if (!(await isRecorded(token))) {
          await bucket.deleteParts(token);
          await bucket.delete(token);
        }
        await unmark(token);
        recovered += 1;
      }
      return recovered;
    },
  };
}

/** Fetches a file. Its size and digest are those that were recorded when it was received, or it is not taken. */
async function fetchFile(bucket: Pick<Bucket, "get">, file: FileKey, path: string): Promise<void> {
  const { token, sizeBytes, sha256 } = file;
  // If someone removed the folder, the file itself is not gone.
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  for (let fetches = 1; ; fetches += 1) {
    try {
      const tooLong = (): Error => damaged(`it has more than ${sizeBytes} bytes`);
      const found = await bucket.get(token, sizeBytes, (body) =>
        writeReceived(path, body, sizeBytes, tooLong, false),
      );
      if (found.sizeBytes === sizeBytes && found.sha256 === sha256) return;
      await rm(path, { force: true });
      if (found.sizeBytes === sizeBytes) throw damaged("its SHA-256 differs");
      throw damaged(`it has ${found.sizeBytes} bytes, expected ${sizeBytes}`);
    } catch (error) {
      // The client repeats only requests that got no answer at all.
      const isTransient = codeOf(error) === "file_damaged" || error instanceof TransferBroken;
      if (!isTransient || fetches === FETCHES_MAX) throw error;
    }
  }
}

/** Reports what fails of a bucket. A missing object is no failure of it. */
function reported({ close: _close, ...operations }: Bucket, onProblem: (error: unknown) => void) {
  const entries = Object.entries(operations).map(
    ([name, operation]: [string, (...given: never[]) => Promise<unknown>]) => [
      name,
      async (...given: never[]): Promise<unknown> => {
        try {
          return await operation(...given);
        } catch (error) {
          if (codeOf(error) !== "ENOENT") onProblem(error);
          throw error;
        }
      },
    ],
  );
  return Object.fromEntries(entries) as typeof operations; // each has the type that it had
}

/** Writes, reads, lists and removes a small object. Throws if that fails. */
export async function probeBucket(bucket: Bucket): Promise<void> {
  const key = `${MARKS}probe-${randomUUID()}`;
  await bucket.put(key, PROBE);
  try {
    const read = await bucket.get(key, PROBE.length, async (body) => {
      const parts: Uint8Array[] = [];
      for await (const part of body) parts.push(part);
      return Buffer.concat(parts).toString();
    });
    if (read !== PROBE) throw damaged("a test object has other content than was written");
    await bucket.list(key, 1);
  } finally {
    await bucket.delete(key);
  }
}

import { Worker } from "node:worker_threads";
import type { FolderContents } from "../../wire/daemon-folders.ts";
import { KbsyncError } from "../../lib/failure.ts";
import { entryUrl } from "../../lib/package.ts";
import { callWorker } from "../../lib/worker-calls.ts";
import type { WatchedSource } from "../rules/rules.ts";
import type { CountBounds } from "./folder-contents.ts";

/** The methods of the thread. Both throw `source_unusable`. */
export interface ProbeMethods extends Record<string, (argument: never) => unknown> {
  realPath: (path: string) => string;
  count: (request: { readonly source: WatchedSource; readonly bounds: CountBounds }) => FolderContents;
}

/** Examines a new folder in a thread of its own: a file system whose server is away can block the calling thread for ever. */
export type FolderProbe = ReturnType<typeof openFolderProbe>;

/** A count of a quarter of a million files takes a second on a warm disk, and 100 MB. */
const BOUNDS: CountBounds = { forMs: 4000, files: 250_000 };
/** A file system that does not answer for this long is away: twice the longest count. */
const SILENT_MS = 2 * BOUNDS.forMs;
/** Threads at a time. One that hangs cannot be ended, so it counts until the file system answers. */
const PROBES_MAX = 2;

let running = 0;

/** Opens a probe. Its calls end when the signal aborts. Throws `probe_busy` and `source_unusable`. */
export function openFolderProbe(signal: AbortSignal, silentMs = SILENT_MS) {
  signal.throwIfAborted();
  if (running >= PROBES_MAX) {
    throw new KbsyncError("other folders are being examined", { code: "probe_busy", retryable: true });
  }
  running += 1;
  const thread = new Worker(entryUrl("sync/scan/folder-probe-worker"), { name: "folder probe" });
  thread.unref();
  thread.once("exit", () => (running -= 1));
  const calls = callWorker<ProbeMethods>(thread, "folder probe");
  const close = (): void => void thread.terminate();
  signal.addEventListener("abort", close, { once: true });

  const answered = async <T>(path: string, call: Promise<T>): Promise<T> => {
    let timer: NodeJS.Timeout | undefined;
    const silence = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => reject(silent(path)), silentMs);
    });
    try {
      return await Promise.race([call, silence]);
    } catch (error) {
      signal.throwIfAborted();
      throw error;
    } finally {
      clearTimeout(timer);
    }
  };
  return {
    /** Returns the path of an existing folder without symbolic links. */
    realPath: (path: string): Promise<string> => answered(path, calls.call("realPath", path)),
    count: (source: WatchedSource): Promise<FolderContents> =>
      answered(source.absolutePath, calls.call("count", { source, bounds: BOUNDS })),
    close: (): void => {
      signal.removeEventListener("abort", close);
      close();
    },
  };
}

function silent(path: string): KbsyncError {
  return new KbsyncError(`the file system of ${path} does not answer`, {
    code: "source_unusable",
    subject: path,
    hint: "A network file system whose server is away does this.",
  });
}

import { lazyWorker } from "../../lib/lazy-worker.ts";
import { entryUrl } from "../../lib/package.ts";
import type { ScanEntry } from "../plan/model.ts";
import type { Rules } from "../rules/rules.ts";
import { type ReaderMethods, unpackDocument } from "./batch.ts";
import { isConverted, kindOfName } from "../../formats/kinds.ts";
import { readDocument, SMALL_BYTES } from "./read.ts";
import type { ReadOptions, ReadOutcome } from "./outcome.ts";

/** Reads files to send, with the results of `readDocument`. */
export interface DocumentReader {
  read(absolutePath: string, entry: ScanEntry, rules: Rules, options?: ReadOptions): Promise<ReadOutcome>;
  /** Ends the thread, if there is one. Later reads run in this thread. */
  close(): Promise<void>;
}

/** Small texts in one turn that justify a thread, whose start costs as much as reading hundreds. */
const BATCH_FILES_MIN = 48;
/** Idle time after which the thread ends, so that an idle daemon holds no memory for it. */
const IDLE_MS = 5000;

interface Request {
  readonly absolutePath: string;
  readonly entry: ScanEntry;
  readonly rules: Rules;
  readonly options: ReadOptions;
  readonly resolve: (outcome: ReadOutcome | Promise<ReadOutcome>) => void;
}

/** Opens a reader that works in the caller's thread. */
export function openLocalReader(): DocumentReader {
  return { read: readDocument, close: async () => Promise.resolve() };
}

/**
 * Opens a reader that reads many small texts in a separate thread: reading and hashing are a quarter of what sending a file
 * costs the main thread. Reads few files, large files and files that are not text in the main thread.
 */
export function openThreadReader(): DocumentReader {
  const worker = lazyWorker<ReaderMethods>(entryUrl("sync/read/reader-worker"), "reading");
  let requests: Request[] = [];
  /** Until the thread answers, files are read here, so that no file waits for its start. */
  let state: "none" | "starting" | "up" | "closed" = "none";
  let idle: NodeJS.Timeout | undefined;

  const readHere = ({ absolutePath, entry, rules, options, resolve }: Request): void =>
    resolve(readDocument(absolutePath, entry, rules, options));
  const start = async (): Promise<void> => {
    state = "starting";
    try {
      await worker.call("greet", undefined);
      if (state === "starting") state = "up";
    } catch {
      // Reading continues here, and the next batch starts a thread again.
      if (state === "starting") state = "none";
    }
  };
  const stayUp = (): void => {
    clearTimeout(idle);
    idle = setTimeout(() => {
      state = "none";
      void worker.close();
    }, IDLE_MS).unref();
  };
  const readThere = async (rules: Rules, batch: readonly Request[]): Promise<void> => {
    try {
      const paths = batch.map(({ entry }) => entry.path);
      const answer = await worker.call("read", { source: rules.source, paths });
      for (const [index, request] of batch.entries()) {
        const document = unpackDocument(answer, index, request.entry, rules);
        if (document === undefined) readHere(request);
        else request.resolve({ kind: "document", document });
      }
    } catch {
      // A thread died: its unfinished files are read here.
      if (state === "up") state = "none";
      for (const request of batch) readHere(request);
    }
  };
  const flush = (): void => {
    const batch = requests;
    requests = [];
    const isWorthIt = batch.length >= BATCH_FILES_MIN && state !== "closed";
    if (isWorthIt) {
      if (state === "none") void start();
      stayUp();
    }
    if (!isWorthIt || state !== "up") {
      for (const request of batch) readHere(request);
      return;
    }
    for (const [rules, group] of Map.groupBy(batch, (request) => request.rules)) void readThere(rules, group);
  };

  return {
    read: async (absolutePath, entry, rules, options = {}) => {
      const named = kindOfName(entry.path);
      const isSmallText =
        entry.sizeBytes <= SMALL_BYTES &&
        entry.link === undefined &&
        named.kind === "content" &&
        !isConverted(named);
      if (!isSmallText) return readDocument(absolutePath, entry, rules, options);
      return new Promise((resolve) => {
        requests.push({ absolutePath, entry, rules, options, resolve });
        if (requests.length === 1) queueMicrotask(flush);
      });
    },
    close: async () => {
      state = "closed";
      clearTimeout(idle);
      await worker.close();
    },
  };
}

import type { ChatStore } from "../store/chat.ts";
import type { RetentionStore } from "../store/retention.ts";
import type { FileArea } from "../uploads/file-area.ts";

/** How long things are kept that nobody uses any more. */
export interface Retention {
  /** Uploaded files that no resource uses. */
  readonly unusedFileDays: number;
  /** Records of deleted resources. */
  readonly deletedRecordDays: number;
  /** Images linked to a thread. */
  readonly threadImageDays: number;
  /** Threads without a new message. */
  readonly threadDays: number;
  /** Messages to endpoints that were given up. */
  readonly deadLetterDays: number;
}

export const DEFAULT_RETENTION: Retention = {
  unusedFileDays: 7,
  deletedRecordDays: 90,
  threadImageDays: 7,
  threadDays: 90,
  deadLetterDays: 30,
};

/** What one round has removed. */
export interface Swept {
  readonly answers: number;
  readonly records: number;
  /** Images let go by their threads, and rows of threads. */
  readonly threadImages: number;
  readonly turns: number;
  readonly files: number;
  readonly deadLetters: number;
}

const DAY_MS = 24 * 60 * 60 * 1000;
/** Time between rounds; what is kept for days may stay an hour longer. */
const EVERY_MS = 60 * 60 * 1000;
/** Least time between an upload and the create that uses it, an hour, however short unused files are kept. */
const UPLOADED_FOR_DAYS = 1 / 24;
/** Rows removed in one transaction, so that no other write waits long. */
const PART = 500;

/** What housekeeping works on. */
export interface HousekeepingParts {
  readonly store: RetentionStore & Pick<ChatStore, "purgeThreads" | "purgeThreadImages">;
  readonly files: Pick<FileArea, "remove">;
  readonly retention: Retention;
  readonly nowMs: () => number;
  readonly onSwept: (swept: Swept) => void;
  readonly onProblem: (error: unknown) => void;
}

/** Removes, now and then, what was kept long enough. */
export interface Housekeeping {
  /** Begins with a round at once. */
  start(): void;
  /** One round. Rejects where the store or the disk fails; what was removed until then stays removed. */
  sweep(): Promise<Swept>;
  /** Ends after the part under way. */
  close(): Promise<void>;
}

/** Opens it; it does nothing before `start` or `sweep`. */
export function openHousekeeping(parts: HousekeepingParts): Housekeeping {
  const { store, files, retention, nowMs } = parts;
  const stop = new AbortController();
  let round: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;

  const isoBefore = (days: number): string => new Date(nowMs() - days * DAY_MS).toISOString();
  /** Repeats a bounded removal until there is nothing left for it. */
  const all = async (remove: () => Promise<number>): Promise<number> => {
    let sum = 0;
    while (!stop.signal.aborted) {
      const removed = await remove();
      sum += removed;
      if (removed < PART) break;
    }
    return sum;
  };

  const removeFiles = async (): Promise<number> => {
    const beforeIso = isoBefore(Math.max(retention.unusedFileDays, UPLOADED_FOR_DAYS));
    let removed = 0;
    for (const token of await store.unusedFiles(beforeIso, PART)) {
      if (stop.signal.aborted) break;
      if (await files.remove(token, () => store.removeUnusedFile(token, beforeIso))) removed += 1;
    }
    return removed;
  };

  const sweep = async (): Promise<Swept> => ({
    answers: await all(() => store.sweepAnswers(nowMs(), PART)),
    records: await all(() => store.purgeDeleted(isoBefore(retention.deletedRecordDays), PART)),
    threadImages: await all(() => store.purgeThreadImages(isoBefore(retention.threadImageDays), PART)),
    turns: await all(() => store.purgeThreads(isoBefore(retention.threadDays), PART)),
    files: await all(removeFiles),
    deadLetters: await all(() => store.purgeDead(nowMs() - retention.deadLetterDays * DAY_MS, PART)),
  });
  const start = (): void => {
    if (stop.signal.aborted) return;
    round = sweep()
      .then(parts.onSwept, (error: unknown) => {
        if (!stop.signal.aborted) parts.onProblem(error);
      })
      .finally(() => {
        timer = setTimeout(start, EVERY_MS).unref();
      });
  };

  return {
    start,
    sweep,
    close: async () => {
      stop.abort();
      await round;
      clearTimeout(timer);
    },
  };
}

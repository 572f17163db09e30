import type { SharedTurns } from "../queue/shared-turns.ts";
import type { TokenBuckets } from "../store/token-buckets.ts";
import type { Queue } from "../queue/queue.ts";
import type { Records } from "../store/records.ts";
import type { FileStore } from "../uploads/file-store.ts";

/** How long unused data is retained. */
export interface Retention {
  /** Uploaded files that no resource uses. */
  readonly unusedFileDays: number;
  /** Records of deleted resources. */
  readonly deletedRecordDays: number;
  /** Images linked to a thread. */
  readonly threadImageDays: number;
  /** Threads without a new message. */
  readonly threadDays: number;
}

export const DEFAULT_RETENTION: Retention = {
  unusedFileDays: 7,
  deletedRecordDays: 90,
  threadImageDays: 7,
  threadDays: 90,
};

/** Counts of removals in one sweep. */
export interface Swept {
  readonly answers: number;
  readonly records: number;
  /** Images removed from threads, and rows of threads. */
  readonly threadImages: number;
  readonly turns: number;
  readonly files: number;
  /** Files that a crash left between their row and their bytes. */
  readonly leftovers: number;
  /** Webhook messages that were given up. */
  readonly messages: number;
  /** Claims of processes that crashed. */
  readonly claims: number;
  /** Full buckets of rates. */
  readonly buckets: number;
}

const HOUR_MS = 60 * 60 * 1000;
const DAY_MS = 24 * HOUR_MS;
/** Time between sweeps: data may stay an hour longer than configured. */
const INTERVAL_MS = HOUR_MS;
/** Least age of a removed upload, an hour, whatever the configuration: the create that uses the file needs time to arrive. */
const UPLOADED_FOR_DAYS = 1 / 24;
/** Time for which webhook messages that were given up are counted. */
const GIVEN_UP_DAYS = 30;
/** Rows removed in one transaction, so that other writes do not wait long. */
const BATCH_ROWS = 500;

/** The dependencies of housekeeping. */
export interface HousekeepingParts {
  readonly records: Pick<
    Records,
    | "file"
    | "unusedFiles"
    | "removeUnusedFile"
    | "sweepAnswers"
    | "purgeDeleted"
    | "purgeThreads"
    | "purgeThreadImages"
  >;
  readonly queue: Pick<Queue, "purgeFailed">;
  readonly files: Pick<FileStore, "remove" | "recover">;
  readonly turns: Pick<SharedTurns, "runIfFree" | "sweep">;
  readonly buckets?: Pick<TokenBuckets, "sweep"> | undefined;
  readonly retention: Retention;
  readonly nowMs: () => number;
  readonly onSwept: (swept: Swept) => void;
  readonly onProblem: (error: unknown) => void;
}

/** Removes expired data at intervals; of several processes one at a time does. */
export interface Housekeeping {
  /** Starts with a sweep at once. */
  start(): void;
  /** Runs one sweep. Rejects with the first failure of the store or the disk, after it has tried all removals. */
  sweep(): Promise<Swept>;
  /** Ends after the current batch. */
  close(): Promise<void>;
}

/** Opens housekeeping. It does nothing before `start` or `sweep`. */
export function openHousekeeping(parts: HousekeepingParts): Housekeeping {
  const { records, queue, files, turns, retention, nowMs } = parts;
  const stop = new AbortController();
  let sweeping: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;

  const isoBefore = (days: number): string => new Date(nowMs() - days * DAY_MS).toISOString();
  /** Repeats a bounded removal until nothing is left. */
  const all = async (remove: () => Promise<number>): Promise<number> => {
    let sum = 0;
    while (!stop.signal.aborted) {
      const removed = await remove();
      sum += removed;
      if (removed < BATCH_ROWS) break;
    }
    return sum;
  };

  const removeFiles = async (): Promise<number> => {
    const beforeIso = isoBefore(Math.max(retention.unusedFileDays, UPLOADED_FOR_DAYS));
    let removed = 0;
    for (const token of await records.unusedFiles(beforeIso, BATCH_ROWS)) {
      if (stop.signal.aborted) break;
      if (await files.remove(token, () => records.removeUnusedFile(token, beforeIso))) removed += 1;
    }
    return removed;
  };

  const recover = (): Promise<number> =>
    files.recover(async (token) => (await records.file(token)) !== undefined);
  const sweep = async (): Promise<Swept> => {
    const failures: Error[] = [];
    /** Removals do not depend on each other: on a full disk, files must go even if rows cannot. */
    const once = async (remove: () => Promise<number>): Promise<number> => {
      try {
        return await remove();
      } catch (error) {
        failures.push(error instanceof Error ? error : new Error(String(error)));
        return 0;
      }
    };
    const tried = (remove: () => Promise<number>): Promise<number> => once(() => all(remove));
    const swept = {
      answers: await tried(() => records.sweepAnswers(nowMs(), BATCH_ROWS)),
      records: await tried(() => records.purgeDeleted(isoBefore(retention.deletedRecordDays), BATCH_ROWS)),
      threadImages: await tried(() =>
        records.purgeThreadImages(isoBefore(retention.threadImageDays), BATCH_ROWS),
      ),
      turns: await tried(() => records.purgeThreads(isoBefore(retention.threadDays), BATCH_ROWS)),
      files: await tried(removeFiles),
      leftovers: await once(recover),
      messages: await tried(() => queue.purgeFailed("webhook", nowMs() - GIVEN_UP_DAYS * DAY_MS, BATCH_ROWS)),
      claims: await tried(() => turns.sweep(BATCH_ROWS)),
      buckets: await tried(async () => (await parts.buckets?.sweep(BATCH_ROWS)) ?? 0),
    };
    const [failure] = failures;
    if (failure !== undefined) throw failure;
    return swept;
  };
  const sweepIfFree = async (): Promise<void> => {
    const isFree = await turns.runIfFree("housekeeping", async () => parts.onSwept(await sweep()));
    // Leftovers of uploads may lie on a disk of this process alone.
    if (!isFree) await recover();
  };
  const start = (): void => {
    if (stop.signal.aborted) return;
    sweeping = sweepIfFree()
      .catch((error: unknown) => {
        if (!stop.signal.aborted) parts.onProblem(error);
      })
      .finally(() => {
        timer = setTimeout(start, INTERVAL_MS).unref();
      });
  };

  return {
    start,
    sweep,
    close: async () => {
      stop.abort();
      await sweeping;
      clearTimeout(timer);
    },
  };
}

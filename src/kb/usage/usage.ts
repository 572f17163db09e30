import type { Queue } from "../queue/queue.ts";
import type { Records } from "../store/records.ts";
import { HOUR_MS, LATENCY_MS, rangeOf } from "./series.ts";

/** Counts what accounts use, by hour. A crash loses what was counted in the last seconds. */
export interface Usage {
  noteSearch(this: void, accountId: string, seconds: number): void;
  /** Notes that the number of documents, or of waiting ones, may have changed. */
  noteChange(this: void, accountId: string): void;
  /** Stores what was counted for an account, or for all. Rejects if the store does; nothing is lost then. */
  flush(this: void, accountId?: string): Promise<void>;
  /** Stores the rest. Does not reject: the service ends. */
  close(): Promise<void>;
}

/** Time between two stores of what was counted: an idle service writes nothing, a busy one a row for each account. */
const FLUSH_MS = 15_000;

export interface UsageParts {
  readonly records: Pick<Records, "addUsage" | "collections">;
  readonly queue: Pick<Queue, "figures">;
  readonly nowMs: () => number;
  /** Reports the first of consecutive failures. */
  readonly onProblem: (error: unknown) => void;
}

/** Opens the counts, which a timer stores. At most one entry for each account is held in memory. */
export function openUsage({ records, queue, nowMs, onProblem }: UsageParts): Usage {
  /** Counts of searches by range of duration. */
  const counted = new Map<string, number[]>();
  let isFailing = false;

  const entryOf = (accountId: string): number[] => {
    const entry = counted.get(accountId) ?? LATENCY_MS.concat(0).map(() => 0);
    counted.set(accountId, entry);
    return entry;
  };
  const store = async (accountId: string, searches: readonly number[]): Promise<void> => {
    const [collections, { waiting }] = await Promise.all([
      records.collections(accountId),
      queue.figures("ingest", accountId),
    ]);
    const documents = collections.reduce((sum, { resources }) => sum + resources, 0);
    const hour = Math.floor(nowMs() / HOUR_MS);
    await records.addUsage({ accountId, hour, documents, queued: waiting, searches });
    // Looks again while documents wait, also if nothing happens.
    if (waiting > 0) entryOf(accountId);
  };
  const flush = async (accountId?: string): Promise<void> => {
    // Copied, because an account whose documents wait is added again at once.
    for (const [account, searches] of Array.from(counted)) {
      if (accountId !== undefined && account !== accountId) continue;
      counted.delete(account);
      try {
        await store(account, searches);
      } catch (error) {
        const entry = entryOf(account);
        for (const [at, count] of searches.entries()) entry[at] = (entry[at] ?? 0) + count;
        throw error;
      }
    }
  };
  const tick = async (): Promise<void> => {
    try {
      await flush();
      isFailing = false;
    } catch (error) {
      if (!isFailing) onProblem(error);
      isFailing = true;
    }
  };
  let ticking = Promise.resolve();
  const timer = setInterval(() => {
    ticking = ticking.then(tick);
  }, FLUSH_MS).unref();

  return {
    noteSearch: (accountId, seconds) => {
      const entry = entryOf(accountId);
      const range = rangeOf(seconds * 1000);
      entry[range] = (entry[range] ?? 0) + 1;
    },
    noteChange: (accountId) => void entryOf(accountId),
    flush,
    close: async () => {
      clearInterval(timer);
      await ticking;
      await tick();
    },
  };
}

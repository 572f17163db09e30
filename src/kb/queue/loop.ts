import { setTimeout as sleep } from "node:timers/promises";
import { openQueueWatch } from "../../lib/queue-watch.ts";

/** Runs the jobs of a queue beside each other. */
export interface Loop {
  /** Checks for work; to be called at the start, and whenever a job was put. */
  wake(this: void): void;
  running(): number;
  /**
   * Starts no more, aborts what runs, and waits for that, at most `timeoutMs`. Jobs that were not done keep their leases until
   * the leases are closed.
   */
  close(timeoutMs?: number): Promise<void>;
}

/** What a loop is opened with. */
export interface LoopParts<T> {
  /** Finds the jobs that start now beside the running ones, and after how long to check again. */
  readonly find: (running: readonly T[]) => Promise<{ readonly jobs: readonly T[]; readonly nextMs: number }>;
  /** Runs a job; rejects where the store failed, after which the queue rests. */
  readonly run: (job: T, signal: AbortSignal) => Promise<void>;
  /** Is notified of failures of the store. */
  readonly onProblem: (error: unknown) => void;
}

/** Opens a loop; it does nothing before `wake`. The end of each job makes it check again. */
export function openLoop<T>({ find, run, onProblem }: LoopParts<T>): Loop {
  const stop = new AbortController();
  const { signal } = stop;
  const running = new Map<T, Promise<void>>();
  const start = (job: T): void => {
    const done = run(job, signal)
      .catch((error: unknown) => watch.fail(error))
      .finally(() => {
        running.delete(job);
        watch.wake();
      });
    running.set(job, done);
  };
  const check = async (): Promise<void> => {
    const { jobs, nextMs } = await find([...running.keys()]);
    if (signal.aborted) return;
    for (const job of jobs) start(job);
    if (nextMs < Infinity) watch.sleep(nextMs);
  };
  const watch = openQueueWatch({ check, onProblem });
  return {
    wake: watch.wake,
    running: () => running.size,
    close: async (timeoutMs) => {
      stop.abort();
      const limit = new AbortController();
      const ended = Promise.all([watch.close(), ...running.values()]);
      const patience =
        timeoutMs === undefined
          ? ended
          : sleep(timeoutMs, undefined, { signal: limit.signal }).catch(() => undefined);
      await Promise.race([ended, patience]);
      limit.abort();
    },
  };
}

import { setTimeout as sleep } from "node:timers/promises";
import { openQueueWatch } from "../../lib/queue-watch.ts";

/** Runs the jobs of a queue concurrently. */
export interface Loop {
  /** Checks for work. Call it at the start and whenever a job is put. */
  wake(this: void): void;
  running(): number;
  /**
   * Starts no more jobs, aborts the running ones, and waits for them, at most `timeoutMs`. Unfinished jobs keep their leases
   * until the leases are closed.
   */
  close(timeoutMs?: number): Promise<void>;
}

/** The dependencies of a loop. */
export interface LoopParts<T> {
  /** Finds the jobs that may start now, given the running ones, and the time until the next check. */
  readonly find: (running: readonly T[]) => Promise<{ readonly jobs: readonly T[]; readonly nextMs: number }>;
  /** Runs a job. Rejects when the store fails; the queue then pauses. */
  readonly run: (job: T, signal: AbortSignal) => Promise<void>;
  /** Reports failures of the store. */
  readonly onProblem: (error: unknown) => void;
}

/** Opens a loop. It does nothing before `wake`, and checks again whenever a job ends. */
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
    watch.sleep(nextMs);
  };
  const watch = openQueueWatch({ check, onProblem });
  return {
    wake: watch.wake,
    running: () => running.size,
    close: async (timeoutMs) => {
      stop.abort();
      const limit = new AbortController();
      const ended = Promise.all([watch.close(), ...running.values()]);
      const timedOut =
        timeoutMs === undefined
          ? ended
          : sleep(timeoutMs, undefined, { signal: limit.signal }).catch(() => undefined);
      await Promise.race([ended, timedOut]);
      limit.abort();
    },
  };
}

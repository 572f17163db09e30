/** Longest sleep between two checks of a queue: a clock that is set back must not delay due jobs for longer. */
const SLEEP_MS_MAX = 60_000;
/** Pause after a failure of the store itself, which no job caused. */
const STORE_RETRY_MS = 5_000;

export interface QueueWatchOptions {
  /** Starts due jobs. Calls never overlap. */
  readonly check: () => Promise<void>;
  /** Called on failures of the store. */
  readonly onProblem: (error: unknown) => void;
}

/** Schedules checks of a durable queue: on wake-up, when a job becomes due, and at least once a minute. */
export interface QueueWatch {
  /** Checks now, or once more after the check in progress. */
  wake(this: void): void;
  /** Checks after `ms` unless woken before. */
  sleep(ms: number): void;
  /** Reports a failure of the store and pauses all checks, which prevents a tight retry loop. */
  fail(this: void, error: unknown): void;
  /** Stops checking and waits for the check in progress. */
  close(): Promise<void>;
}

/** Opens a watch. It is idle until `wake`. */
export function openQueueWatch({ check, onProblem }: QueueWatchOptions): QueueWatch {
  let checking: Promise<void> | undefined;
  let again = false;
  let closed = false;
  let isPaused = false;
  let timer: NodeJS.Timeout | undefined;

  const fail = (error: unknown): void => {
    if (closed) return;
    onProblem(error);
    isPaused = true;
    clearTimeout(timer);
    timer = setTimeout(() => {
      isPaused = false;
      wake();
    }, STORE_RETRY_MS).unref();
  };
  const wake = (): void => {
    if (closed || isPaused) return;
    again = checking !== undefined;
    checking ??= check()
      .catch(fail)
      .finally(() => {
        checking = undefined;
        if (again) wake();
      });
  };

  return {
    wake,
    sleep: (ms) => {
      if (isPaused) return;
      clearTimeout(timer);
      timer = setTimeout(wake, Math.min(SLEEP_MS_MAX, Math.max(1, ms))).unref();
    },
    fail,
    close: async () => {
      closed = true;
      clearTimeout(timer);
      await checking;
    },
  };
}

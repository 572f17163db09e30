/** Longest sleep until a queue is looked at again: a clock that was set back must not hold up what is due. */
const SLEEP_MS_MAX = 60_000;
/** Wait after a failure of the store itself, which nothing in the queue is to blame for. */
const STORE_RETRY_MS = 5_000;

/** What a durable queue is watched with. */
export interface QueueWatchOptions {
  /** Begins what is due; never called twice at once. */
  readonly look: () => Promise<void>;
  /** Notified of failures of the store. */
  readonly onProblem: (error: unknown) => void;
}

/** When a durable queue is looked at: whenever it is woken, when something comes to be due, and once in a while. */
export interface QueueWatch {
  /** Looks now, or once more after the look under way. */
  wake(this: void): void;
  /** Looks after so long, unless it is woken before. */
  sleep(ms: number): void;
  /** After a failure of the store everything waits, so that nothing is begun again in a tight loop. */
  fail(this: void, error: unknown): void;
  /** Looks no more; ends with the look under way. */
  close(): Promise<void>;
}

/** Opens a watch; it does nothing before `wake`. */
export function openQueueWatch({ look, onProblem }: QueueWatchOptions): QueueWatch {
  let looking: Promise<void> | undefined;
  let again = false;
  let closed = false;
  let isResting = false;
  let timer: NodeJS.Timeout | undefined;

  const fail = (error: unknown): void => {
    if (closed) return;
    onProblem(error);
    isResting = true;
    clearTimeout(timer);
    timer = setTimeout(() => {
      isResting = false;
      wake();
    }, STORE_RETRY_MS).unref();
  };
  const wake = (): void => {
    if (closed || isResting) return;
    again = looking !== undefined;
    looking ??= look()
      .catch(fail)
      .finally(() => {
        looking = undefined;
        if (again) wake();
      });
  };

  return {
    wake,
    sleep: (ms) => {
      if (isResting) return;
      clearTimeout(timer);
      timer = setTimeout(wake, Math.min(SLEEP_MS_MAX, Math.max(1, ms))).unref();
    },
    fail,
    close: async () => {
      closed = true;
      clearTimeout(timer);
      await looking;
    },
  };
}

/** Lets at most `width` pieces of work run at once and at most `line` wait. */
export interface Gate {
  /**
   * Runs the work when there is room. Throws what `full` makes when the line is full, and the signal's reason when that is
   * aborted while the work waits, which leaves the line then; in both cases nothing was started.
   */
  run<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T>;
  running(): number;
  waiting(): number;
}

/** Opens a gate. First come, first served. */
export function openGate(width: number, line: number, full: () => Error): Gate {
  const waiters: (() => void)[] = [];
  let running = 0;

  const enter = async (signal: AbortSignal | undefined): Promise<void> => {
    signal?.throwIfAborted();
    if (running < width) {
      running += 1;
      return;
    }
    if (waiters.length >= line) throw full();
    // The one who leaves hands over its place, so `running` stays as it is.
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const giveUp = (): void => {
      const at = waiters.indexOf(resolve);
      // Who was handed a place already runs, and hands it on.
      if (at === -1) return;
      waiters.splice(at, 1);
      reject(signal?.reason);
    };
    waiters.push(resolve);
    signal?.addEventListener("abort", giveUp);
    try {
      await promise;
    } finally {
      signal?.removeEventListener("abort", giveUp);
    }
  };
  const leave = (): void => {
    const next = waiters.shift();
    if (next === undefined) running -= 1;
    else next();
  };

  return {
    running: () => running,
    waiting: () => waiters.length,
    run: async (work, signal) => {
      await enter(signal);
      try {
        return await work();
      } finally {
        leave();
      }
    },
  };
}

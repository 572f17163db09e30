/** Lets at most `width` pieces of work run at once and at most `line` wait. */
export interface Gate {
  /** Runs the work when there is room. Throws what `full` makes when the line is full; then nothing was started. */
  run<T>(work: () => Promise<T>): Promise<T>;
  running(): number;
  waiting(): number;
}

/** Opens a gate. First come, first served. */
export function openGate(width: number, line: number, full: () => Error): Gate {
  const waiters: (() => void)[] = [];
  let running = 0;

  const enter = async (): Promise<void> => {
    if (running < width) {
      running += 1;
      return;
    }
    if (waiters.length >= line) throw full();
    // The one who leaves hands over its place, so `running` stays as it is.
    const { promise, resolve } = Promise.withResolvers<void>();
    waiters.push(resolve);
    await promise;
  };
  const leave = (): void => {
    const next = waiters.shift();
    if (next === undefined) running -= 1;
    else next();
  };

  return {
    running: () => running,
    waiting: () => waiters.length,
    run: async (work) => {
      await enter();
      try {
        return await work();
      } finally {
        leave();
      }
    },
  };
}

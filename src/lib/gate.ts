/** Lets work of at most `width` weight run at once and at most `line` pieces wait. */
export interface Gate {
  /**
   * Runs the work when there is room. Throws what `full` makes when the line is full, and the signal's reason when that is
   * aborted while the work waits, which leaves the line then; in both cases nothing was started. `weight`: default 1;
   * what weighs more than all that may run has to run alone.
   */
  run<T>(work: () => Promise<T>, signal?: AbortSignal, weight?: number): Promise<T>;
  /** The weight of what runs. */
  running(): number;
  waiting(): number;
}

/** Opens a gate. First come, first served. */
export function openGate(width: number, line: number, full: () => Error): Gate {
  const waiters: { readonly weight: number; readonly enter: () => void }[] = [];
  let running = 0;

  const enter = async (weight: number, signal: AbortSignal | undefined): Promise<void> => {
    signal?.throwIfAborted();
    if (waiters.length === 0 && running + weight <= width) {
      running += weight;
      return;
    }
    if (waiters.length >= line) throw full();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiter = { weight, enter: resolve };
    const giveUp = (): void => {
      const at = waiters.indexOf(waiter);
      // Who was let in already runs, and leaves by itself.
      if (at === -1) return;
      waiters.splice(at, 1);
      reject(signal?.reason);
      // One that weighs less may have room.
      letIn();
    };
    waiters.push(waiter);
    signal?.addEventListener("abort", giveUp);
    try {
      await promise;
    } finally {
      signal?.removeEventListener("abort", giveUp);
    }
  };
  const letIn = (): void => {
    for (let next = waiters[0]; next !== undefined && running + next.weight <= width; next = waiters[0]) {
      waiters.shift();
      // Counted here, before it wakes: nobody else may take its room.
      running += next.weight;
      next.enter();
    }
  };

  return {
    running: () => running,
    waiting: () => waiters.length,
    run: async (work, signal, asked = 1) => {
      const weight = Math.min(asked, width);
      await enter(weight, signal);
      try {
        return await work();
      } finally {
        running -= weight;
        letIn();
      }
    },
  };
}

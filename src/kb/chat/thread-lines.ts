import { openTurns } from "../../lib/turns.ts";

/** Questions of one thread, answered one after another in the order in which they came. */
export interface ThreadLines {
  /** Runs the work in its turn. Throws what `full` makes, and the signal's reason as soon as the asker left the line. */
  run<T>(thread: string, work: () => Promise<T>, signal: AbortSignal): Promise<T>;
}

/** Opens the lines; in each at most `lineMax` wait behind the one that is answered. */
export function openThreadLines(lineMax: number, full: () => Error): ThreadLines {
  const turns = openTurns();
  /** How many of a thread run or wait; those who left wait no more. */
  const counts = new Map<string, number>();
  const add = (thread: string, more: number): void => {
    const count = (counts.get(thread) ?? 0) + more;
    if (count === 0) counts.delete(thread);
    else counts.set(thread, count);
  };

  return {
    run: async (thread, work, signal) => {
      signal.throwIfAborted();
      if ((counts.get(thread) ?? 0) > lineMax) throw full();
      add(thread, 1);
      let hasBegun = false;
      const left = Promise.withResolvers<never>();
      const leave = (): void => {
        if (!hasBegun) left.reject(signal.reason);
      };
      signal.addEventListener("abort", leave);
      try {
        const inTurn = turns.run(thread, async () => {
          signal.throwIfAborted();
          hasBegun = true;
          return work();
        });
        // Work that has begun ends by itself, so that the next of the thread never runs beside it.
        return await Promise.race([inTurn, left.promise]);
      } finally {
        signal.removeEventListener("abort", leave);
        add(thread, -1);
      }
    },
  };
}

import { openTurns } from "../../lib/turns.ts";

/** Runs the questions of each thread one after another, in the order in which they came. */
interface ThreadQueues {
  /** Runs work in its turn. Throws the error of `full`, and the signal's reason if it aborts while the work waits. */
  run<T>(thread: string, work: () => Promise<T>, signal: AbortSignal): Promise<T>;
}

/** Opens the queues. At most `lineMax` questions of a thread wait behind the running one. */
export function openThreadQueues(lineMax: number, full: () => Error): ThreadQueues {
  const turns = openTurns();
  /** Running and waiting questions of each thread, without those that left. */
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
      let hasStarted = false;
      const left = Promise.withResolvers<never>();
      const leave = (): void => {
        if (!hasStarted) left.reject(signal.reason);
      };
      signal.addEventListener("abort", leave);
      try {
        const inTurn = turns.run(thread, async () => {
          signal.throwIfAborted();
          hasStarted = true;
          return work();
        });
        // Started work always runs to its end, because the thread's next question must not run at the same time.
        return await Promise.race([inTurn, left.promise]);
      } finally {
        signal.removeEventListener("abort", leave);
        add(thread, -1);
      }
    },
  };
}

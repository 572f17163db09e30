/** Longest wait of a timer. */
const TIMER_MS_MAX = 2 ** 31 - 1;

/** Opens an empty set of requests that wait to leave. */
export function openWaiters() {
  const waiters = new Set<() => void>();
  return {
    /** Resolves at the next `wake`, when the signal aborts, and at the latest after `ms`, if that is given. */
    wait: (ms: number | undefined, signal: AbortSignal): Promise<void> =>
      new Promise((resolve) => {
        const proceed = (): void => {
          clearTimeout(timer);
          signal.removeEventListener("abort", proceed);
          waiters.delete(proceed);
          resolve();
        };
        const timer =
          ms === undefined
            ? undefined
            : setTimeout(proceed, Math.max(0, Math.min(Math.ceil(ms), TIMER_MS_MAX)));
        signal.addEventListener("abort", proceed, { once: true });
        waiters.add(proceed);
        if (signal.aborted) proceed();
      }),
    /** Ends all waits. */
    wake: (): void => {
      for (const proceed of waiters) proceed();
    },
  };
}

/** The time that a stop may still take. */
export interface StopBudget {
  /** Milliseconds left; the full budget before a signal. */
  leftMs(): number;
}

/**
 * Time from the signal, in milliseconds, that the daemon's requests and the service may take. The rest of the ten seconds
 * of a stop is for closing databases and threads, which takes two seconds on a busy machine.
 */
const BUDGET_MS = 7000;
/** Least time for the service, so that requests about to end are not cut off. */
const LEFT_MS_MIN = 500;

/** Opens a budget that starts with the signal. */
export function openStopBudget(signal: AbortSignal): StopBudget {
  let stoppedMs: number | undefined;
  signal.addEventListener("abort", () => (stoppedMs = performance.now()), { once: true });
  return {
    leftMs: () =>
      stoppedMs === undefined
        ? BUDGET_MS
        : Math.max(LEFT_MS_MIN, BUDGET_MS - (performance.now() - stoppedMs)),
  };
}

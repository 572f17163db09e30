/** How long ending may still take. */
export interface StopBudget {
  /** Milliseconds from now; all of it where no signal has come, for then nobody waits. */
  leftMs(): number;
}

/**
 * From a signal to the end, in milliseconds: what the service may take when the daemon's requests have ended. The rest of
 * the ten seconds that a stop may take is for closing databases and threads.
 */
const BUDGET_MS = 8500;
/** A service that is left nothing would cut off requests that end in the next moment. */
const LEFT_MS_MIN = 500;

/** Starts counting at the signal. */
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

/** One timer for a loop. It fires at the earliest time that was set. */
export interface Alarm {
  set(atMs: number): void;
  /** Resolves when it fires; at once if it fired since the last call. */
  rings(): Promise<void>;
  /** Fires, and clears the timer. */
  stop(): void;
}

/** Makes an alarm without a time. */
export function openAlarm(now: () => number): Alarm {
  let timer: { readonly handle: NodeJS.Timeout; readonly ringsMs: number } | undefined;
  let wake: (() => void) | undefined;
  let rang = false;
  let stopped = false;
  const ring = (): void => {
    timer = undefined;
    rang = true;
    wake?.();
  };
  return {
    set: (atMs) => {
      const delayMs = Math.max(0, atMs - now());
      // By the timers' own clock: the other one may have been set forward since the timer was set.
      const ringsMs = performance.now() + delayMs;
      if (stopped || (timer !== undefined && timer.ringsMs <= ringsMs)) return;
      clearTimeout(timer?.handle);
      timer = { handle: setTimeout(ring, delayMs), ringsMs };
    },
    rings: async () => {
      if (!rang) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
      wake = undefined;
      rang = false;
    },
    stop: () => {
      stopped = true;
      clearTimeout(timer?.handle);
      ring();
    },
  };
}

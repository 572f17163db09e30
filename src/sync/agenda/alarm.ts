/** One timer for a loop. It fires at the earliest time that was set. */
export interface Alarm {
  set(atMs: number): void;
  /** Resolves when it fires; at once if it fired since the last call. */
  fires(): Promise<void>;
  /** Fires, and clears the timer. */
  stop(): void;
}

/** Makes an alarm without a time. */
export function openAlarm(now: () => number): Alarm {
  let timer: { readonly handle: NodeJS.Timeout; readonly firesMs: number } | undefined;
  let wake: (() => void) | undefined;
  let fired = false;
  let stopped = false;
  const fire = (): void => {
    timer = undefined;
    fired = true;
    wake?.();
  };
  return {
    set: (atMs) => {
      const delayMs = Math.max(0, atMs - now());
      // By the timers' own clock: the other one may have been set forward since the timer was set.
      const firesMs = performance.now() + delayMs;
      if (stopped || (timer !== undefined && timer.firesMs <= firesMs)) return;
      clearTimeout(timer?.handle);
      timer = { handle: setTimeout(fire, delayMs), firesMs };
    },
    fires: async () => {
      if (!fired) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
      wake = undefined;
      fired = false;
    },
    stop: () => {
      stopped = true;
      clearTimeout(timer?.handle);
      fire();
    },
  };
}

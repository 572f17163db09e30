/** A slice of each turn of the event loop, for tasks that would fill the loop together though each leaves it now and then. */
export interface TurnSlice {
  /**
   * Resolves at once while the slice of this turn lasts. After that each task that asks gets a turn of its own, in the
   * order of asking, so that many take no more of a turn than one.
   */
  pause(): Promise<void>;
}

/** Opens a slice of so long. `nowMs` is a clock that never goes back. */
export function openTurnSlice(sliceMs: number, nowMs: () => number = () => performance.now()): TurnSlice {
  const waiting: (() => void)[] = [];
  let endMs = -Infinity;
  const resumeNext = (): void => {
    endMs = nowMs() + sliceMs;
    // It runs on until it pauses again or waits for something, before the loop goes on.
    waiting.shift()?.();
    if (waiting.length > 0) setImmediate(resumeNext);
  };
  return {
    pause: () => {
      if (nowMs() < endMs) return Promise.resolve();
      return new Promise((resolve) => {
        waiting.push(resolve);
        if (waiting.length === 1) setImmediate(resumeNext);
      });
    },
  };
}

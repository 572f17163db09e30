/** A slice of each turn of the event loop, for tasks that would fill the loop together though each leaves it now and then. */
export interface TurnSlice {
  /**
   * Resolves at once while the slice of this turn lasts. After that each task that asks gets a turn of its own, in the
   * order of asking, so that many take no more of a turn than one.
   */
  pause(): Promise<void>;
}

export interface TurnSliceOptions {
  readonly sliceMs: number;
  /** Whether something is under way that goes first: no slice begins meanwhile. Default: nothing ever is. */
  readonly isUrgent?: () => boolean;
  /** Longest wait of a slice for that, so that the tasks go on whatever comes. */
  readonly urgentMsMax?: number;
  /** A clock that never goes back. */
  readonly nowMs?: () => number;
}

/** Opens a slice. */
export function openTurnSlice({
  sliceMs,
  isUrgent = () => false,
  urgentMsMax = 0,
  nowMs = () => performance.now(),
}: TurnSliceOptions): TurnSlice {
  const waiting: (() => void)[] = [];
  let endMs = -Infinity;
  const resumeNext = (): void => {
    const atMs = nowMs();
    if (isUrgent() && atMs < endMs + urgentMsMax) {
      // Not at the next turn: turns without work would take the processor from what is waited for.
      setTimeout(resumeNext, 1);
      return;
    }
    endMs = atMs + sliceMs;
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

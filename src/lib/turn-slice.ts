/** A time slice of each turn of the event loop, for tasks that yield but together would saturate the loop. */
export interface TurnSlice {
  /**
   * Resolves at once while the slice of this turn lasts. Later callers each get a turn of their own, in order, so that many
   * tasks take no more of a turn than one.
   */
  pause(): Promise<void>;
}

export interface TurnSliceOptions {
  readonly sliceMs: number;
  /** Whether urgent work is in progress, which delays the next slice. Default: never. */
  readonly isUrgent?: () => boolean;
  /** Longest delay by urgent work, so that tasks never starve. */
  readonly urgentMsMax?: number;
  /** Monotonic clock. */
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
      // Not setImmediate: idle turns would take processor time from the urgent work.
      setTimeout(resumeNext, 1);
      return;
    }
    endMs = atMs + sliceMs;
    // The task runs until it pauses or awaits, before the loop continues.
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

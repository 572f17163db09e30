/** Time of a turn of the event loop for all bulk work together, before other requests get theirs. */
const SLICE_MS = 1;
/**
 * Longest time for which bulk work yields to running searches: a search needs several turns and would wait for a slice at each
 * (bench/hostile-account.ts). Bulk work gets a quarter of the event loop, however many searches run.
 */
const URGENT_FIRST_MS = 3;

/**
 * Tracks urgent work, searches, to which bulk work yields: long lists and the figures of event streams. `pause` resolves when a
 * piece of bulk work may run.
 */
export interface Urgent extends TurnSlice {
  during<T>(this: void, work: () => Promise<T>): Promise<T>;
}

export function openUrgent(): Urgent {
  let running = 0;
  return {
    ...openTurnSlice({ sliceMs: SLICE_MS, isUrgent: () => running > 0, urgentMsMax: URGENT_FIRST_MS }),
    during: async (work) => {
      running += 1;
      try {
        return await work();
      } finally {
        running -= 1;
      }
    },
  };
}

/** A time slice of each turn of the event loop, for tasks that yield but together would saturate the loop. */
interface TurnSlice {
  /**
   * Resolves at once while the slice of this turn lasts. Later callers each get a turn of their own, in order, so that many
   * tasks take no more of a turn than one.
   */
  pause(): Promise<void>;
}

interface TurnSliceOptions {
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

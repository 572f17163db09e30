/** How many pieces of work of one kind may be on their way, by how long they take. Pure: the times come in. */
export interface Window {
  readonly size: number;
  /** When it was made smaller last: what left before that tells nothing of the smaller one. */
  readonly shrunkMs: number;
}

/** Few enough that a service which does one after another answers the last of them in time, if it needs seconds for each. */
const SIZE_FIRST = 8;
/** Answered within this time, one more may be on its way. */
const QUICK_MS = 1500;
/** What takes longer than this waits for others more than it is worked on: fewer at once are done as soon. */
const SLOW_MS = 10_000;

export const FIRST_WINDOW: Window = { size: SIZE_FIRST, shrunkMs: -Infinity };

/**
 * The window after a piece of work. Quick ones let it double within the time that one takes; slow ones shrink it, once for
 * all that left together, down to one. Times are of a clock that nobody sets.
 */
export function windowAfter(window: Window, leftMs: number, endedMs: number, sizeMax: number): Window {
  const tookMs = endedMs - leftMs;
  if (tookMs <= QUICK_MS) return window.size < sizeMax ? { ...window, size: window.size + 1 } : window;
  if (tookMs < SLOW_MS || leftMs < window.shrunkMs) return window;
  return { size: Math.max(1, Math.floor(window.size * 0.75)), shrunkMs: endedMs };
}

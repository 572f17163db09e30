/** How many jobs of one kind may be in flight, by how long they take. Pure: times are arguments. */
export interface Window {
  readonly size: number;
  /** When it last shrank. Jobs that left earlier say nothing about the smaller window. */
  readonly shrunkMs: number;
}

/**
 * Small enough that a service which works on one at a time and needs seconds for each answers the last of them in time.
 */
const SIZE_FIRST = 8;
/** If a job takes at most this long, one more may be in flight. */
const QUICK_MS = 1500;
/** A job that takes longer waits for others more than it is worked on. With fewer at once, all are done as soon. */
const SLOW_MS = 10_000;

export const FIRST_WINDOW: Window = { size: SIZE_FIRST, shrunkMs: -Infinity };

/**
 * Returns the window after a job. Quick jobs double it within the time that one takes. Slow jobs shrink it, once for
 * all that left together, down to one. Times are of a monotonic clock.
 */
export function windowAfter(window: Window, leftMs: number, endedMs: number, sizeMax: number): Window {
  const tookMs = endedMs - leftMs;
  if (tookMs <= QUICK_MS) return window.size < sizeMax ? { ...window, size: window.size + 1 } : window;
  if (tookMs < SLOW_MS || leftMs < window.shrunkMs) return window;
  return { size: Math.max(1, Math.floor(window.size * 0.75)), shrunkMs: endedMs };
}

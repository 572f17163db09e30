/** Arithmetic of retries. Pure: time and randomness are arguments. */

/** First wait after a failure, in milliseconds. It doubles with each further failure. */
export const DELAY_MS_MIN = 250;
/** Longest wait between two attempts: a service that comes back is noticed within a minute. */
export const DELAY_MS_MAX = 60_000;
/** Longest wait that a service may request with Retry-After. A wrong clock must not stop the daemon for a year. */
const RETRY_AFTER_MS_MAX = 3_600_000;
/** Wait before a file that failed alone is tried again: a minute, doubling up to an hour. */
const PARK_MS_MIN = 60_000;
const PARK_MS_MAX = 3_600_000;

/**
 * Returns the backoff after `failures` (from 1) in a row: `firstMs`, doubled by each further failure. The service's
 * request is a lower bound. A random part prevents many clients from returning at the same instant. `random` is in [0,
 * 1).
 */
export function delayMs(
  failures: number,
  retryAfterMs: number | undefined,
  random: number,
  firstMs = DELAY_MS_MIN,
): number {
  const full = Math.min(DELAY_MS_MAX, firstMs * 2 ** Math.min(failures - 1, 20));
  return Math.max(Math.min(retryAfterMs ?? 0, RETRY_AFTER_MS_MAX), full / 2 + (full / 2) * random);
}

/** Returns the wait of a parked file after `tries` (from 1). */
export function parkMs(tries: number): number {
  return Math.min(PARK_MS_MAX, PARK_MS_MIN * 2 ** (tries - 1));
}

/** Returns the width of the queue after a success. It grows by one after a whole width has succeeded. */
export function widen(width: number, widthMax: number): number {
  return Math.min(widthMax, width + 1 / Math.max(1, width));
}

/** Returns the width of the queue after the service asked to slow down. */
export function narrow(width: number): number {
  return Math.max(1, width / 2);
}

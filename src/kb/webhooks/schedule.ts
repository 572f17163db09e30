const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

/**
 * Waits after the first, second, … failed attempt, 24 hours in total. A message that fails once more is given up. The
 * schedule counts attempts, because a difference of two wall-clock times is wrong after the clock was set.
 */
const DELAYS_MS: readonly number[] = [
  5 * SECOND_MS,
  30 * SECOND_MS,
  2 * MINUTE_MS,
  10 * MINUTE_MS,
  30 * MINUTE_MS,
  HOUR_MS,
  2 * HOUR_MS,
  4 * HOUR_MS,
  5 * HOUR_MS,
  5 * HOUR_MS,
  6 * HOUR_MS + 17 * MINUTE_MS + 25 * SECOND_MS,
];
/** Longest wait that a receiver may request. */
const REQUESTED_MS_MAX = 6 * HOUR_MS;

/** Jitter: the share by which a wait is shortened or lengthened, so that messages that failed together do not retry together. */
const JITTER = 0.1;

/** A message after a failed attempt. */
export interface FailedAttempt {
  /** Attempts so far, this one included. */
  readonly attempts: number;
  /** The receiver's `Retry-After`, if any. */
  readonly requestedMs: number | undefined;
  /** A random number in [0, 1). */
  readonly chance: number;
}

/** Returns the backoff before the next attempt, or the wait that the receiver requested if longer. Undefined: give up. Pure. */
export function nextWaitMs({ attempts, requestedMs, chance }: FailedAttempt): number | undefined {
  const delay = DELAYS_MS[attempts - 1];
  if (delay === undefined) return undefined;
  const spread = delay * (1 + JITTER * (2 * chance - 1));
  return Math.round(Math.max(spread, Math.min(requestedMs ?? 0, REQUESTED_MS_MAX)));
}

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

/**
 * Waits after the first, second, … failed attempt, 24 hours together. A message that fails once more is a dead letter. Attempts
 * are counted because a difference of two times of day is wrong once the clock is set.
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
/** Longest wait that a receiver may ask for. */
const ASKED_MS_MAX = 6 * HOUR_MS;

/** Share by which a wait is made shorter or longer, so that what failed together does not come back together. */
const JITTER = 0.1;

/** A message after a failed attempt. */
export interface Attempted {
  /** Attempts so far, this one included. */
  readonly attempts: number;
  /** What the receiver asked for; undefined where it did not. */
  readonly askedMs: number | undefined;
  /** In [0, 1). */
  readonly chance: number;
}

/** How long to wait for the next attempt: ever longer, or as long as the receiver asked for. Undefined: no more. Pure. */
export function nextWaitMs({ attempts, askedMs, chance }: Attempted): number | undefined {
  const delay = DELAYS_MS[attempts - 1];
  if (delay === undefined) return undefined;
  const spread = delay * (1 + JITTER * (2 * chance - 1));
  return Math.round(Math.max(spread, Math.min(askedMs ?? 0, ASKED_MS_MAX)));
}

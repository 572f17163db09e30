/** A message is tried for so long, then it is a dead letter. */
export const TRIED_FOR_MS = 24 * 60 * 60 * 1000;

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

/** Waits after the first, second, … failed attempt; the last one stands for all further. Together they reach 24 hours. */
const DELAYS_MS: readonly number[] = [
  5 * SECOND_MS,
  30 * SECOND_MS,
  2 * MINUTE_MS,
  10 * MINUTE_MS,
  30 * MINUTE_MS,
  HOUR_MS,
  2 * HOUR_MS,
  4 * HOUR_MS,
  6 * HOUR_MS,
];

/** The longest waits after the first, second, … failed attempt, where the receiver asks for none; the last stands for all further. */
export const longestWaitsMs = (): readonly number[] => DELAYS_MS.map((delay) => delay * (1 + JITTER));

/** Share by which a wait is made shorter or longer, so that what failed together does not come back together. */
const JITTER = 0.1;

/** A message after a failed attempt. */
export interface Attempted {
  /** Attempts so far, this one included. */
  readonly attempts: number;
  /** When it was put into the queue. */
  readonly createdMs: number;
  readonly nowMs: number;
  /** What the receiver asked for; undefined where it did not. */
  readonly askedMs: number | undefined;
  /** In [0, 1). */
  readonly chance: number;
}

/** How long to wait for the next attempt: ever longer, or as long as the receiver asked for. Undefined: no more. Pure. */
export function nextWaitMs(attempted: Attempted): number | undefined {
  const { attempts, createdMs, nowMs, askedMs, chance } = attempted;
  const delay = DELAYS_MS[Math.min(attempts, DELAYS_MS.length) - 1] ?? 0;
  const spread = delay * (1 + JITTER * (2 * chance - 1));
  // A clock that was set back since makes it longer.
  const leftMs = Math.min(TRIED_FOR_MS, createdMs + TRIED_FOR_MS - nowMs);
  if (leftMs <= 0) return undefined;
  // The last attempt is at the end of the time, not a whole wait before it.
  return Math.min(leftMs, Math.round(Math.max(spread, askedMs ?? 0)));
}

/** The wait of a `Retry-After` header, in seconds or as a date; undefined for anything else. */
export function retryAfterMs(header: string | undefined, nowMs: number): number | undefined {
  if (header === undefined) return undefined;
  if (/^\d{1,9}$/.test(header)) return Number(header) * SECOND_MS;
  const atMs = Date.parse(header);
  return Number.isNaN(atMs) ? undefined : Math.max(0, atMs - nowMs);
}

import type { BucketRule } from "../../store/token-buckets.ts";
import { Refusal } from "../../resources/refusal.ts";

/** The requests that a key may send: sustained, and at once after a pause. */
export type RateRule = BucketRule;

/** Maximum buckets. One more clears all of them, and each key then has a full burst again. */
const BUCKETS_MAX = 10_000;

/** Limits requests by key, with a token bucket for each. */
export interface RateLimiter {
  /**
   * Takes a token from the key's bucket. Throws, or rejects with, `rate_limited` and the seconds until the next token. Returns a promise
   * only if it has to ask the database.
   */
  take(key: string, nowMs: number): Promise<void> | undefined;
}

interface Bucket {
  readonly tokens: number;
  readonly atMs: number;
}

/** Opens a limiter; without a rule it limits nothing. `who` is the subject of the refusal. */
export function openRateLimiter(rule: RateRule | undefined, who = "The key"): RateLimiter {
  if (rule === undefined) return { take: () => undefined };
  const buckets = new Map<string, Bucket>();
  return {
    take: (key, nowMs) => {
      const bucket = refilled(buckets.get(key), rule, nowMs);
      if (bucket.tokens < 1) throw rateLimited(rule, who, ((1 - bucket.tokens) * 60_000) / rule.perMinute);
      if (buckets.size >= BUCKETS_MAX && !buckets.has(key)) buckets.clear();
      buckets.set(key, { tokens: bucket.tokens - 1, atMs: nowMs });
      return undefined;
    },
  };
}

/** Makes the refusal of a request above a rate. `waitMs`: time until the next token. */
export function rateLimited({ perMinute }: RateRule, who: string, waitMs: number): Refusal {
  return new Refusal("rate_limited", `${who} has sent more than ${perMinute} requests a minute.`, {
    retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1000)),
  });
}

/** Refills a bucket for the time that has passed. A clock that was set back adds and removes nothing. */
function refilled(bucket: Bucket | undefined, { perMinute, burst }: RateRule, nowMs: number): Bucket {
  if (bucket === undefined) return { tokens: burst, atMs: nowMs };
  const gained = (Math.max(0, nowMs - bucket.atMs) * perMinute) / 60_000;
  return { tokens: Math.min(burst, bucket.tokens + gained), atMs: nowMs };
}

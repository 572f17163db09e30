import { Refusal } from "../resources/refusal.ts";

/** The requests that a key may send. */
export interface RateRule {
  /** Sustained rate. */
  readonly perMinute: number;
  /** Requests that may come at once after a pause. */
  readonly burst: number;
}

/** Maximum buckets. One more clears all of them, and each key then has a full burst again. */
const BUCKETS_MAX = 10_000;

/** Limits requests by key, with a token bucket for each. */
export interface RateLimiter {
  /** Takes a token from the key's bucket. Throws `rate_limited`, with the seconds until the next token. */
  take(key: string, nowMs: number): void;
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
      if (bucket.tokens < 1) {
        const seconds = Math.max(1, Math.ceil(((1 - bucket.tokens) * 60) / rule.perMinute));
        throw new Refusal("rate_limited", `${who} has sent more than ${rule.perMinute} requests a minute.`, {
          retryAfterSeconds: seconds,
        });
      }
      if (buckets.size >= BUCKETS_MAX && !buckets.has(key)) buckets.clear();
      buckets.set(key, { tokens: bucket.tokens - 1, atMs: nowMs });
    },
  };
}

/** Refills a bucket for the time that has passed. A clock that was set back adds and removes nothing. */
function refilled(bucket: Bucket | undefined, { perMinute, burst }: RateRule, nowMs: number): Bucket {
  if (bucket === undefined) return { tokens: burst, atMs: nowMs };
  const gained = (Math.max(0, nowMs - bucket.atMs) * perMinute) / 60_000;
  return { tokens: Math.min(burst, bucket.tokens + gained), atMs: nowMs };
}

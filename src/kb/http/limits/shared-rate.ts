import { hash } from "node:crypto";
import type { BucketRule, TokenBuckets } from "../../store/token-buckets.ts";
import { rateLimited, type RateLimiter } from "./rate.ts";

/** A process leases this part of a burst at a time: few statements, and little that it keeps from the other processes. */
const LEASED_PART = 16;
/** Maximum keys with tokens in memory. One more drops those of keys that no request waits for. */
const KEYS_MAX = 10_000;

/** The share that a process has of a key's bucket. */
interface Stock {
  tokens: number;
  /** Until then the bucket is known to be empty. */
  emptyUntilMs: number;
  /** Requests that wait for a token. */
  readonly waiting: PromiseWithResolvers<void>[];
}

/** The shared buckets of one kind. `who` is the subject of the refusal. */
export interface SharedRate {
  readonly buckets: TokenBuckets;
  /** Distinguishes the buckets of one limit from those of others. */
  readonly kind: string;
  readonly rule: BucketRule;
  readonly who: string;
}

/**
 * Opens a limiter whose buckets all processes of a store share: together they admit what one process would. Each leases some tokens at a
 * time, and requests that wait for tokens of one key share a statement. What a process leased and did not use is at most
 * `1/LEASED_PART` of a burst. While the database does not answer, a request for which no token is left fails with `store_busy`.
 */
export function openSharedRate({ buckets, kind, rule, who }: SharedRate): RateLimiter {
  const leased = Math.max(1, Math.floor(rule.burst / LEASED_PART));
  const stocks = new Map<string, Stock>();

  const stockOf = (key: string): Stock => {
    const found = stocks.get(key);
    if (found !== undefined) return found;
    if (stocks.size >= KEYS_MAX)
      for (const [each, { waiting }] of stocks) if (waiting.length === 0) stocks.delete(each);
    const stock: Stock = { tokens: 0, emptyUntilMs: -Infinity, waiting: [] };
    stocks.set(key, stock);
    return stock;
  };
  /** Leases tokens until no request waits. */
  const lease = async (key: string, stock: Stock, nowMs: number): Promise<void> => {
    const { waiting } = stock;
    const bucket = hash("sha256", `${kind} ${key}`);
    while (waiting.length > 0) {
      const asked = waiting.length;
      try {
        const { tokens, waitMs } = await buckets.take(bucket, rule, Math.max(leased, asked));
        const served = waiting.splice(0, tokens);
        for (const { resolve } of served) resolve();
        stock.tokens += tokens - served.length;
        if (tokens >= asked) continue;
        stock.emptyUntilMs = nowMs + waitMs;
        for (const { reject } of waiting.splice(0)) reject(rateLimited(rule, who, waitMs));
      } catch (error) {
        for (const { reject } of waiting.splice(0)) reject(error);
      }
    }
  };

  return {
    take: (key, nowMs) => {
      const stock = stockOf(key);
      if (stock.tokens >= 1) {
        stock.tokens -= 1;
        return undefined;
      }
      if (nowMs < stock.emptyUntilMs) throw rateLimited(rule, who, stock.emptyUntilMs - nowMs);
      const turn = Promise.withResolvers<void>();
      stock.waiting.push(turn);
      if (stock.waiting.length === 1) void lease(key, stock, nowMs);
      return turn.promise;
    },
  };
}

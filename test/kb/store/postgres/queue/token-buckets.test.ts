import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { openSharedRate } from "../../../../../src/kb/http/limits/shared-rate.ts";
import type { RateLimiter } from "../../../../../src/kb/http/limits/rate.ts";
import type { BucketRule, TokenBuckets } from "../../../../../src/kb/store/token-buckets.ts";
import { Refusal } from "../../../../../src/kb/resources/refusal.ts";
import { openPostgresStore } from "../../../../../src/kb/store/postgres/open.ts";
import type { Store } from "../../../../../src/kb/store/store.ts";
import { openServices } from "../service/services.ts";
import { isSkipped, newDatabase, query } from "../databases.ts";

const HOUR = "interval '1 hour'";

describe.skipIf(isSkipped())("buckets that processes share", () => {
  let url: string;
  const stores: Store[] = [];
  beforeAll(async () => {
    url = await newDatabase();
    for (let at = 0; at < 4; at += 1) stores.push(await openPostgresStore(url));
  });
  beforeEach(() => query(url, "DELETE FROM token_bucket"));
  afterAll(async () => {
    for (const store of stores) await store.close();
  });
  const bucketsOf = (at: number): TokenBuckets => stores[at]?.buckets ?? expect.unreachable();
  const limiterOf = (all: readonly RateLimiter[], at: number): RateLimiter => all[at] ?? expect.unreachable();
  const limiters = (rule: BucketRule, kind = "key"): RateLimiter[] =>
    stores.map((_, at) => openSharedRate({ buckets: bucketsOf(at), kind, rule, who: "The key" }));
  /** Sends requests to limiters in turn; returns how many were admitted, and the longest Retry-After. */
  const spend = async (all: readonly RateLimiter[], requests: number, key = "one") => {
    const settled = await Promise.allSettled(
      Array.from({ length: requests }, async (_, at) => all[at % all.length]?.take(key, performance.now())),
    );
    const refusals = settled.flatMap((each) => (each.status === "rejected" ? [each.reason] : []));
    for (const refusal of refusals) expect(refusal).toMatchObject({ code: "rate_limited" });
    return {
      admitted: requests - refusals.length,
      waits: [
        ...new Set(refusals.map((refusal) => (refusal instanceof Refusal ? refusal.retryAfterSeconds : -1))),
      ],
    };
  };

  it("admit one burst, not one for each process", async () => {
    expect(await spend(limiters({ perMinute: 1, burst: 40 }), 400)).toEqual({ admitted: 40, waits: [60] });
  });

  it("admit nearly a burst if requests come one at a time, since processes lease tokens ahead", async () => {
    const all = limiters({ perMinute: 1, burst: 160 });
    let admitted = 0;
    for (let sent = 0; sent < 400; sent += 1) {
      const { admitted: one } = await spend([limiterOf(all, sent % 3)], 1);
      admitted += one;
    }
    expect(admitted).toBe(160);
    // What a process leased last it has for itself.
    expect((await spend([limiterOf(all, 3)], 1)).admitted).toBe(0);
  });

  it("count each key, and each kind of limit, by itself", async () => {
    const rule = { perMinute: 1, burst: 2 };
    const one = limiterOf(limiters(rule), 0);
    const other = limiterOf(limiters(rule, "agent"), 0);
    const spendAll = async () => [
      (await spend([one], 3, "a")).admitted,
      (await spend([one], 3, "b")).admitted,
      (await spend([other], 3, "a")).admitted,
    ];
    expect(await spendAll()).toEqual([2, 2, 2]);
    expect(await spendAll()).toEqual([0, 0, 0]);
  });

  it("fill with time, by the database's clock, and never above a burst", async () => {
    const rule = { perMinute: 60, burst: 3 };
    expect(await bucketsOf(0).take("a", rule, 5)).toEqual({ tokens: 3, waitMs: expect.closeTo(1000, -2) });
    await query(url, "UPDATE token_bucket SET full_at = full_at - interval '2 s'");
    expect((await bucketsOf(1).take("a", rule, 5)).tokens).toBe(2);
    await query(url, `UPDATE token_bucket SET full_at = full_at - ${HOUR}`);
    expect((await bucketsOf(2).take("a", rule, 1)).waitMs).toBe(0);
    expect((await bucketsOf(3).take("a", rule, 5)).tokens).toBe(2);
  });

  it("refill after a failover to a server whose clock is behind", async () => {
    const rule = { perMinute: 60, burst: 3 };
    await bucketsOf(0).take("a", rule, 3);
    await query(url, `UPDATE token_bucket SET full_at = full_at + ${HOUR}`);
    expect(await bucketsOf(1).take("a", rule, 1)).toEqual({ tokens: 0, waitMs: expect.closeTo(1000, -2) });
    await query(url, "UPDATE token_bucket SET full_at = full_at - interval '1 s'");
    expect((await bucketsOf(0).take("a", rule, 1)).tokens).toBe(1);
  });

  it("shared buckets are asked once by all requests that wait at a time, and not while they are known to be empty", async () => {
    let asked = 0;
    const buckets: TokenBuckets = {
      ...bucketsOf(0),
      take: (...given) => {
        asked += 1;
        return bucketsOf(0).take(...given);
      },
    };
    const limiter = openSharedRate({
      buckets,
      kind: "key",
      rule: { perMinute: 1, burst: 160 },
      who: "The key",
    });
    expect((await spend([limiter], 150)).admitted).toBe(150);
    expect(asked).toBeLessThanOrEqual(2);
    expect((await spend([limiter], 1000)).admitted).toBe(10);
    const asks = asked;
    expect((await spend([limiter], 1000)).admitted).toBe(0);
    expect(asked).toBe(asks);
  });

  it("shared buckets are removed when they are full again", async () => {
    await bucketsOf(0).take("full", { perMinute: 60, burst: 3 }, 3);
    await bucketsOf(0).take("empty", { perMinute: 60, burst: 300 }, 300);
    await query(url, "UPDATE token_bucket SET full_at = full_at - interval '5 s'");
    expect(await bucketsOf(1).sweep(10)).toBe(1);
    expect(await bucketsOf(1).sweep(10)).toBe(0);
  });
});

describe.skipIf(isSkipped())("two processes and one key", () => {
  let close = (): Promise<void> => Promise.resolve();
  afterEach(() => close());

  it("admit its rate together, and refuse the rest with Retry-After", async () => {
    const services = await openServices(2, { rate: { perMinute: 2, burst: 20 } });
    close = () => services.close();
    const answers = await Promise.all(
      Array.from({ length: 60 }, (_, at) => services.send(at, "GET", "/api/rag/collections")),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(20);
    const refused = answers.filter(({ status }) => status === 429);
    expect(refused).toHaveLength(40);
    for (const { headers } of refused) expect(Number(headers["retry-after"])).toBeGreaterThan(20);
  });

  it("refuse it at the other process 5 s after it was revoked at one", async () => {
    let nowMs = Date.now();
    const services = await openServices(2, { nowMs: () => nowMs });
    close = () => services.close();
    const [first] = services.all;
    const admin = (await first?.issueKey("local", ["admin"])) ?? null;
    const key = (await first?.issueKey("local", ["read"])) ?? null;
    const get = (at: number) => services.send(at, "GET", "/api/rag/collections", { key });
    expect([(await get(0)).status, (await get(1)).status]).toEqual([200, 200]);
    const { json } = await services.send(0, "GET", "/v1/keys", { key: admin });
    const found = json.data.keys.find(({ scopes }: { scopes: string[] }) => scopes.join() === "read");
    const revoked = await services.send(0, "DELETE", `/v1/keys/${found._id}`, { key: admin });
    expect(revoked.status).toBe(200);
    expect((await get(0)).status).toBe(401);
    nowMs += 5000;
    expect((await get(1)).status).toBe(401);
  });
});

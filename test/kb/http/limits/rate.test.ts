import { request } from "undici";
import { describe, expect, it } from "vitest";
import { openRateLimiter } from "../../../../src/kb/http/limits/rate.ts";
import { hashKey } from "../../../../src/kb/keys/keys.ts";
import { RATE_DEFAULT } from "../../../../src/kb/options.ts";
import { Refusal } from "../../../../src/kb/resources/refusal.ts";
import { openRunning, type Running } from "../../service/running.ts";

const NOON_MS = Date.parse("2026-11-21T12:00:00Z");

/** Seconds to wait; 0 if the request was admitted. */
function waitOf(take: () => unknown): number {
  try {
    take();
    return 0;
  } catch (error) {
    if (error instanceof Refusal && error.refusal === "rate_limited") return error.retryAfterSeconds ?? -1;
    throw error;
  }
}

/** Sends so many requests with the service's own key; returns the statuses of the answers. */
async function statusesOf({ url, key }: Running, count: number): Promise<Set<number>> {
  const statuses = new Set<number>();
  for (let sent = 0; sent < count; sent += 50) {
    const batch = Array.from({ length: Math.min(50, count - sent) }, async () => {
      const { statusCode, body } = await request(`${url}/api/rag/collections`, {
        headers: { pauthkey: key },
      });
      await body.dump();
      statuses.add(statusCode);
    });
    await Promise.all(batch);
  }
  return statuses;
}

describe("a key's bucket", () => {
  const rule = { perMinute: 60, burst: 3 };

  it.each([
    ["admits a burst and no more", [0, 0, 0, 0], [0, 0, 0, 1]],
    ["refills a bucket by a token per second", [0, 0, 0, 1000, 1000], [0, 0, 0, 0, 1]],
    ["never fills a bucket above a burst", [0, 3_600_000, 3_600_000, 3_600_000, 3_600_000], [0, 0, 0, 0, 1]],
    ["counts fractions of tokens", [0, 0, 0, 500, 999, 1500], [0, 0, 0, 1, 1, 0]],
    ["tolerates a clock that is set back", [10_000, 10_000, 10_000, 0, 10_000], [0, 0, 0, 1, 1]],
  ])("%s", (_name, times, waits) => {
    const limiter = openRateLimiter(rule);
    expect(times.map((atMs) => waitOf(() => limiter.take("a", atMs)))).toEqual(waits);
  });

  it("a rate limit has a bucket for each key", () => {
    const limiter = openRateLimiter({ perMinute: 1, burst: 1 });
    expect(["a", "a", "b", "b"].map((key) => waitOf(() => limiter.take(key, 0)))).toEqual([0, 60, 0, 60]);
  });

  it("bounds the number of buckets", () => {
    const limiter = openRateLimiter({ perMinute: 1, burst: 1 });
    for (let key = 0; key < 10_001; key++) void limiter.take(String(key), 0);
    expect(waitOf(() => limiter.take("0", 0))).toBe(0);
  });
});

describe("a service with a rate", () => {
  it("answers a request above the rate with 429 and Retry-After, and other keys as before", async () => {
    let nowMs = NOON_MS;
    const running = await openRunning({ rate: { perMinute: 30, burst: 2 }, nowMs: () => nowMs });
    const get = (key?: string) =>
      running.send("GET", "/api/rag/collections", key === undefined ? {} : { key });
    expect([(await get()).status, (await get()).status]).toEqual([200, 200]);
    const refused = await get();
    expect({ status: refused.status, code: refused.json.error.code }).toEqual({
      status: 429,
      code: "rate_limited",
    });
    expect(refused.headers["retry-after"]).toBe("2");
    expect((await get(await running.issueKey("local"))).status).toBe(200);
    nowMs += 2000;
    expect((await get()).status).toBe(200);
    nowMs -= 2 * 60 * 60 * 1000;
    expect((await get()).status).toBe(429);
    nowMs += 2000;
    expect((await get()).status).toBe(200);
    await running.close();
  });

  it("applies no rate by default on loopback", async () => {
    const running = await openRunning();
    const answers = await Promise.all(
      Array.from({ length: 100 }, () => running.send("GET", "/api/rag/collections")),
    );
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    await running.close();
  });

  it("applies a rate by default if the service listens on other addresses", async () => {
    const running = await openRunning({ host: "0.0.0.0", nowMs: () => NOON_MS });
    expect(await statusesOf(running, RATE_DEFAULT.burst)).toEqual(new Set([200]));
    expect(await statusesOf(running, 1)).toEqual(new Set([429]));
    await running.close();
  });

  it("exempts the program's own key from the default rate", async () => {
    let own = "";
    const running = await openRunning({ host: "0.0.0.0", nowMs: () => NOON_MS, unratedKey: () => own });
    own = hashKey(running.key);
    expect(await statusesOf(running, RATE_DEFAULT.burst + 1)).toEqual(new Set([200]));
    await running.close();
    const limited = await openRunning({ rate: { perMinute: 1, burst: 1 }, unratedKey: () => own });
    own = hashKey(limited.key);
    expect((await limited.send("GET", "/api/rag/collections")).status).toBe(200);
    expect((await limited.send("GET", "/api/rag/collections")).status).toBe(429);
    await limited.close();
  });
});

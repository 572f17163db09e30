import { describe, expect, it } from "vitest";
import { nextWaitMs } from "../../../src/kb/webhooks/delivery-runner.ts";

const HOUR_MS = 60 * 60 * 1000;
const MEAN = { requestedMs: undefined, chance: 0.5 };

describe("nextWaitMs", () => {
  it("waits ever longer, one day in total, and then gives up", () => {
    const waits = Array.from({ length: 11 }, (_, at) => nextWaitMs({ ...MEAN, attempts: at + 1 }) ?? 0);
    expect(waits.slice(0, 9).map((ms) => ms / 1000)).toEqual([
      5, 30, 120, 600, 1800, 3600, 7200, 14_400, 18_000,
    ]);
    expect(waits).toEqual(waits.toSorted((a, b) => a - b));
    expect(waits.reduce((sum, ms) => sum + ms)).toBe(24 * HOUR_MS);
    expect(nextWaitMs({ ...MEAN, attempts: 12 })).toBeUndefined();
  });

  it("spreads a wait by a tenth in both directions", () => {
    expect(nextWaitMs({ ...MEAN, attempts: 2, chance: 0 })).toBe(27_000);
    expect(nextWaitMs({ ...MEAN, attempts: 2, chance: 1 })).toBe(33_000);
  });

  it.each([
    ["shorter than the backoff", 1000, 30_000],
    ["longer than the backoff", HOUR_MS, HOUR_MS],
    ["longer than six hours", 7 * HOUR_MS, 6 * HOUR_MS],
  ])("a wait that the receiver requests counts if it is %s", (_name, requestedMs, expected) => {
    expect(nextWaitMs({ attempts: 2, requestedMs, chance: 0.5 })).toBe(expected);
  });
});

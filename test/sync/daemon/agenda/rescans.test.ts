import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { startRescans } from "../../../../src/sync/daemon/watching.ts";

const HOUR_MS = 3_600_000;
let scans = 0;
let reason: string | undefined;
beforeEach(() => {
  vi.useFakeTimers();
  scans = 0;
  reason = undefined;
});
afterEach(() => {
  vi.useRealTimers();
});
const start = (): ReturnType<typeof startRescans> =>
  startRescans({
    rescan: () => (scans += 1),
    degraded: () => reason,
    periodMs: HOUR_MS,
    random: () => 0.5,
  });

it("scans often as soon as watching fails, and rarely after it works again", () => {
  const rescans = start();
  vi.advanceTimersByTime(60_000);
  expect(scans).toBe(0);
  reason = "the system's limit of watches is reached";
  vi.advanceTimersByTime(60_000);
  expect(scans).toBe(4);
  reason = undefined;
  vi.advanceTimersByTime(60_000);
  expect(scans).toBe(4);
  vi.advanceTimersByTime(HOUR_MS);
  expect(scans).toBe(5);
  rescans.stop();
});

it("scans end when they are stopped", () => {
  const rescans = start();
  rescans.stop();
  expect(vi.getTimerCount()).toBe(0);
});

import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { startPatientTimer } from "../../../src/lib/capped/patient-timer.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function start(timeoutMs: number, waitedMs: () => number): { readonly endedMs: () => number | undefined } {
  const startMs = performance.now();
  let endedMs: number | undefined;
  startPatientTimer(timeoutMs, waitedMs, () => (endedMs = performance.now() - startMs));
  return { endedMs: () => endedMs };
}

it("ends after its time where nothing waits", () => {
  const timer = start(100, () => 40);
  vi.advanceTimersByTime(99);
  expect(timer.endedMs()).toBeUndefined();
  vi.advanceTimersByTime(1);
  expect(timer.endedMs()).toBe(100);
});

it("adds what was waited meanwhile, and what is waited in that time", () => {
  const startMs = performance.now();
  // Half of the time, up to 150 ms of it; 40 ms were waited before.
  const timer = start(100, () => 40 + Math.min(75, (performance.now() - startMs) / 2));
  vi.advanceTimersByTime(1000);
  expect(timer.endedMs()).toBe(175);
});

it("ends after ten times its time, however much is waited", () => {
  const startMs = performance.now();
  const timer = start(100, () => performance.now() - startMs);
  vi.advanceTimersByTime(10_000);
  expect(timer.endedMs()).toBe(1000);
});

it("ends nothing once it is stopped", () => {
  let isOver = false;
  const timer = startPatientTimer(
    100,
    () => 0,
    () => (isOver = true),
  );
  timer.stop();
  vi.advanceTimersByTime(1000);
  expect(isOver).toBe(false);
});

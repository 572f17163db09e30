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

it("a patient timer fires after its timeout when nothing waits", () => {
  const timer = start(100, () => 40);
  vi.advanceTimersByTime(99);
  expect(timer.endedMs()).toBeUndefined();
  vi.advanceTimersByTime(1);
  expect(timer.endedMs()).toBe(100);
});

it("a patient timer adds waits, including those during an extension", () => {
  const startMs = performance.now();
  // Waits half of the time, up to 150 ms, after 40 ms waited before the start.
  const timer = start(100, () => 40 + Math.min(75, (performance.now() - startMs) / 2));
  vi.advanceTimersByTime(1000);
  expect(timer.endedMs()).toBe(175);
});

it("a patient timer fires after ten times its timeout at the latest", () => {
  const startMs = performance.now();
  const timer = start(100, () => performance.now() - startMs);
  vi.advanceTimersByTime(10_000);
  expect(timer.endedMs()).toBe(1000);
});

it("a stopped patient timer does not fire", () => {
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

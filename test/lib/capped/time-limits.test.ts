import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { watchTime } from "../../../src/lib/capped/time-limits.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Watches a child that gets this share of a processor; undefined: the system does not report it. */
function watch(share: number | undefined, { isReady = true } = {}) {
  const child = { isReady, share, waiting: 0 };
  const ends: string[] = [];
  // 4 s of processor time before the request.
  const startMs = performance.now() - 4000;
  const cpuMs = (): number | undefined =>
    child.share === undefined ? undefined : 4000 + (performance.now() - startMs - 4000) * child.share;
  const waitedMs = (): number | undefined =>
    child.share === undefined ? undefined : (performance.now() - startMs) * child.waiting;
  const clock = { isReady: () => child.isReady, cpuMs, waitedMs };
  const watched = watchTime({ cpuMs: 2000, wallMs: 60_000 }, clock, (end, measured) =>
    ends.push(`${end}: ${measured}`),
  );
  return { ...watched, ends, child };
}

it("ends a request that used its processor time", () => {
  const { ends } = watch(1);
  vi.advanceTimersByTime(1750);
  expect(ends).toEqual([]);
  vi.advanceTimersByTime(60_000);
  expect(ends).toEqual(["time: used 2 s of processor time without finishing"]);
});

it("waits for a request that gets little processor time", () => {
  const { ends } = watch(0.05);
  vi.advanceTimersByTime(39_750);
  expect(ends).toEqual([]);
  vi.advanceTimersByTime(250);
  expect(ends).toEqual(["time: used 2 s of processor time without finishing"]);
});

it("reports a busy machine when a request got too little processor time", () => {
  const { ends } = watch(0.01);
  vi.advanceTimersByTime(120_000);
  expect(ends).toEqual(["busy: got 0.6 s of processor time in 60 s"]);
});

it("reports a busy machine when a request waited for a processor and got none", () => {
  const { ends, child } = watch(0);
  child.waiting = 0.9;
  vi.advanceTimersByTime(120_000);
  expect(ends).toEqual(["busy: got 0 s of processor time in 60 s"]);
});

it("reports a child that hangs: it neither runs nor waits for a processor", () => {
  const { ends } = watch(0);
  vi.advanceTimersByTime(120_000);
  expect(ends).toEqual(["hang: used no processor for 30 s, and waited for none"]);
});

it("reports a busy machine when the child did not even start", () => {
  const { ends } = watch(1, { isReady: false });
  vi.advanceTimersByTime(120_000);
  expect(ends).toEqual(["busy: got 0 s of processor time in 60 s"]);
});

it("does not count the start of a child", () => {
  const { ends, child, usedMs } = watch(1, { isReady: false });
  vi.advanceTimersByTime(5000);
  child.isReady = true;
  vi.advanceTimersByTime(2000);
  expect(ends).toEqual([]);
  expect(usedMs()).toBe(1750);
});

it("counts anew when the child allows more", () => {
  const { ends, allow, usedMs } = watch(1);
  vi.advanceTimersByTime(1500);
  allow(5000);
  vi.advanceTimersByTime(4750);
  expect(ends).toEqual([]);
  expect(usedMs()).toBe(6250);
  vi.advanceTimersByTime(250);
  expect(ends).toEqual(["time: used 5 s of processor time without finishing"]);
});

it("limits only the time where the system reports no processor time", () => {
  const { ends, usedMs } = watch(undefined);
  vi.advanceTimersByTime(59_750);
  expect([ends, usedMs()]).toEqual([[], 59_750]);
  vi.advanceTimersByTime(250);
  expect(ends).toEqual(["time: took 60 s without finishing"]);
});

it("reports nothing after it is stopped", () => {
  const { ends, stop } = watch(1);
  stop();
  vi.advanceTimersByTime(120_000);
  expect(ends).toEqual([]);
});

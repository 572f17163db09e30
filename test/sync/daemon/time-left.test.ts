import { describe, expect, it } from "vitest";
import { openRate, openTimeLeft } from "../../../src/sync/daemon/time-left.ts";

interface Kinds {
  readonly texts: number;
  readonly documents: number;
}
const progress = (done: Kinds, total: Kinds) => ({
  done: done.texts + done.documents,
  total: total.texts + total.documents,
  documents: { done: done.documents, total: total.documents },
});

it("gives no time before enough was done, and none when nothing is left", () => {
  const left = openTimeLeft();
  const total = { texts: 100, documents: 0 };
  const at = (texts: number, nowMs: number): number | null => {
    left.sample(progress({ texts, documents: 0 }, total), true, nowMs);
    return left.seconds();
  };
  expect(at(0, 0)).toBeNull();
  expect(at(50, 5000)).toBeNull();
  expect(at(60, 11_000)).toBe(10);
  expect(at(100, 15_000)).toBeNull();
});

it("gives the speed of the last seconds, and none before anything was done or when nothing is left", () => {
  const speed = openRate(15_000);
  const at = (done: number, nowMs: number): number | null => {
    speed.sample(done, 1000, true, nowMs);
    return speed.perSecond();
  };
  expect([at(0, 0), at(0, 1000), at(40, 3000)]).toEqual([null, null, expect.closeTo(14, 0)]);
  for (let seconds = 4; seconds <= 100; seconds += 1) at(38 + seconds, seconds * 1000);
  expect(at(140, 102_000)).toBeCloseTo(1);
  expect(at(1000, 103_000)).toBeNull();
});

it("does not count the time in which nothing may be sent, and gives no time in it", () => {
  const left = openTimeLeft();
  const total = { texts: 1000, documents: 0 };
  for (let seconds = 0; seconds <= 60; seconds += 1)
    left.sample(progress({ texts: seconds, documents: 0 }, total), true, seconds * 1000);
  const before = left.seconds();
  left.sample(progress({ texts: 60, documents: 0 }, total), false, 60_000);
  expect(left.seconds()).toBeNull();
  left.sample(progress({ texts: 60, documents: 0 }, total), true, 9_000_000);
  expect(left.seconds()).toBe(before);
});

describe("for scans of which one takes a second and another two minutes", () => {
  /** Durations in seconds, heavy-tailed, the same in every run. */
  const durations = Array.from({ length: 400 }, (_, at) =>
    Math.min(120, Math.exp(2 + 1.2 * Math.sin(at * 1.7) + 1.3 * Math.sin(at * 0.31 + 1))),
  );
  const totalSeconds = durations.reduce((sum, each) => sum + each, 0);
  const doneAt = (seconds: number): number => {
    let sum = 0;
    const found = durations.findIndex((each) => (sum += each) > seconds);
    return found === -1 ? durations.length : found;
  };
  const left = openTimeLeft();
  const total = { texts: 20_000, documents: durations.length };
  const shown: { readonly atSeconds: number; readonly left: number | null }[] = [];
  for (let atSeconds = 0; atSeconds < totalSeconds; atSeconds += 1) {
    const texts = Math.min(total.texts, atSeconds * 100);
    left.sample(progress({ texts, documents: doneAt(atSeconds) }, total), true, atSeconds * 1000);
    shown.push({ atSeconds, left: left.seconds() });
  }
  const estimates = shown.flatMap(({ atSeconds, left: seconds }) =>
    seconds === null ? [] : [{ atSeconds, seconds }],
  );

  it("the time left is shown for most of the work", () => {
    expect(estimates.length / shown.length).toBeGreaterThan(0.9);
  });

  it("the time left never changes by more than half an hour, or a third, from one second to the next", () => {
    const changes = estimates
      .slice(1)
      .map(({ seconds }, at) => seconds - (estimates[at]?.seconds ?? seconds));
    expect(Math.max(...changes.map(Math.abs))).toBeLessThanOrEqual(1800);
    const shares = changes.flatMap((change, at) => {
      const before = estimates[at]?.seconds ?? 0;
      return before < 900 ? [] : [Math.abs(change) / before];
    });
    expect(Math.max(...shares)).toBeLessThanOrEqual(0.34);
  });

  it("the time left is within a factor of two and a half once a tenth of the work is done", () => {
    const factors = estimates
      .filter(({ atSeconds }) => atSeconds > totalSeconds / 10 && atSeconds < totalSeconds - 300)
      .map(({ atSeconds, seconds }) => Math.abs(Math.log(seconds / (totalSeconds - atSeconds))));
    expect(Math.exp(Math.max(...factors))).toBeLessThan(2.5);
  });
});

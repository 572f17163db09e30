import { expect, it } from "vitest";
import { steadyClock } from "../../src/lib/steady-clock.ts";

it("a steady clock follows the system's clock forward and is never set back", () => {
  let wallMs = 1_000_000;
  let elapsedMs = 0;
  const now = steadyClock(
    () => wallMs,
    () => elapsedMs,
  );
  const pass = (ms: number): void => {
    wallMs += ms;
    elapsedMs += ms;
  };
  expect(now()).toBe(1_000_000);
  pass(500);
  expect(now()).toBe(1_000_500);
  wallMs += 3_600_000; // a suspend, which the other clock does not count
  expect(now()).toBe(4_600_500);
  wallMs -= 7_200_000;
  pass(250);
  expect(now()).toBe(4_600_750);
});

it.each<[string, readonly number[], readonly number[]]>([
  ["runs with the clock", [5, 6, 6, 20], [5, 6, 6, 20]],
  ["goes on where it was whenever the clock is set back", [100, 20, 25, 5, 9], [100, 100, 105, 105, 109]],
  ["follows a clock that is set ahead", [100, 20, 900], [100, 100, 980]],
])("a steady clock over one clock alone %s", (_name, times, steady) => {
  let at = 0;
  const clock = (): number => times[at] ?? NaN;
  const nowMs = steadyClock(clock, clock);
  for (const [index, expected] of steady.entries()) {
    at = index;
    expect(nowMs()).toBe(expected);
  }
});

it("a steady clock gives whole milliseconds, which tables can store, and loses no parts of them", () => {
  let elapsedMs = 0.4;
  const now = steadyClock(
    () => 1000,
    () => elapsedMs,
  );
  const times = Array.from({ length: 4 }, () => {
    elapsedMs += 0.6;
    return now();
  });
  expect(times).toEqual([1000, 1001, 1001, 1002]);
});

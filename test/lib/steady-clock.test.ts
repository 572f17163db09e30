import { expect, it } from "vitest";
import { steadyClock } from "../../src/lib/steady-clock.ts";

it.each<[string, readonly number[], readonly number[]]>([
  ["runs with the clock", [5, 6, 6, 20], [5, 6, 6, 20]],
  [
    "goes on where it was when the clock is set back, as often as it is",
    [100, 20, 25, 5, 9],
    [100, 100, 105, 105, 109],
  ],
  ["follows a clock that is set ahead", [100, 20, 900], [100, 100, 980]],
])("a steady clock %s", (_name, times, steady) => {
  const clock = times.values();
  const nowMs = steadyClock(() => clock.next().value ?? NaN);
  expect(times.map(() => nowMs())).toEqual(steady);
});

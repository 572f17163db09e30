import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, it } from "vitest";
import { openFloodGauge } from "../../../src/sync/watch/flood.ts";

it("reports a flood once per turn with at least as many events as the limit", async () => {
  const gauge = openFloodGauge(3);
  let floods = 0;
  const stop = gauge.listen(() => (floods += 1));
  const turn = async (events: number): Promise<number> => {
    for (let n = 0; n < events; n++) gauge.count();
    await nextTurn();
    await nextTurn();
    return floods;
  };
  expect(await turn(2)).toBe(0);
  // Events of different turns do not add up.
  expect(await turn(2)).toBe(0);
  expect(await turn(3)).toBe(1);
  expect(await turn(1)).toBe(1);
  expect(await turn(9)).toBe(2);
  stop();
  expect(await turn(9)).toBe(2);
});

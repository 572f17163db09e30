import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, it } from "vitest";
import { openTurnSlice } from "../../src/lib/turn-slice.ts";

it("ten tasks take no more of a turn of the event loop than one, and go on in the order of asking", async () => {
  let clockMs = 0;
  const slice = openTurnSlice(2, () => clockMs);
  const worked: number[] = [];
  const tasks = Array.from({ length: 10 }, async (_, task) => {
    await slice.pause();
    for (let piece = 0; piece < 6; piece += 1) {
      clockMs += 1;
      worked.push(task);
      await slice.pause();
    }
  });
  const turns: number[] = [];
  for (let turn = 0; turn < 100; turn += 1) {
    const beforeMs = clockMs;
    await nextTurn();
    turns.push(clockMs - beforeMs);
  }
  await Promise.all(tasks);
  expect(worked).toHaveLength(60);
  expect(Math.max(...turns)).toBe(2);
  expect(worked.slice(0, 22)).toEqual([...Array.from({ length: 20 }, (_, at) => Math.floor(at / 2)), 0, 0]);
});

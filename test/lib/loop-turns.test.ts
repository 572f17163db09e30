import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, it } from "vitest";
import { openLoopTurns } from "../../src/lib/loop-turns.ts";

it("runs tasks of each turn of the loop only until its slice ends, in order within a path", async () => {
  let clockMs = 0;
  const { run } = openLoopTurns({ sliceMs: 2, nowMs: () => clockMs });
  const ran: number[] = [];
  for (let task = 0; task < 6; task += 1) {
    // Most of a task follows in promises.
    const work = async (): Promise<void> => {
      await Promise.resolve();
      clockMs += 1;
      ran.push(task);
    };
    run(["a"], () => void work());
  }
  const turns: number[] = [];
  for (let turn = 0; turn < 4; turn += 1) {
    await nextTurn();
    turns.push(ran.length);
  }
  expect(turns).toEqual([2, 4, 6, 6]);
  expect(ran).toEqual([0, 1, 2, 3, 4, 5]);
});

it("runs the task of another path before those that wait", async () => {
  let clockMs = 0;
  const { run } = openLoopTurns({ sliceMs: 1, nowMs: () => clockMs });
  const ran: string[] = [];
  const add = (path: string): void =>
    run([path], () => {
      clockMs += 1;
      ran.push(path);
    });
  for (let task = 0; task < 10; task += 1) add("flood");
  await nextTurn();
  add("other");
  add("other");
  while (ran.length < 12) await nextTurn();
  expect(ran.slice(0, 5).toSorted()).toEqual(["flood", "flood", "flood", "other", "other"]);
});

import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, it, vi } from "vitest";
import { openTurnSlice } from "../../src/kb/http/limits/urgent.ts";

it("ten tasks take no more of a turn of the event loop than one, and continue in order", async () => {
  let clockMs = 0;
  const slice = openTurnSlice({ sliceMs: 2, nowMs: () => clockMs });
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

it("a slice waits for urgent work, but no longer than its limit", async () => {
  vi.useFakeTimers();
  let clockMs = 0;
  let isUrgent = true;
  const slice = openTurnSlice({ sliceMs: 1, isUrgent: () => isUrgent, urgentMsMax: 5, nowMs: () => clockMs });
  const advance = async (ms: number): Promise<void> => {
    for (let at = 0; at < ms; at += 1) {
      clockMs += 1;
      await vi.advanceTimersByTimeAsync(1);
    }
  };
  const begin = (): { readonly isOver: () => boolean } => {
    let over = false;
    void slice.pause().then(() => (over = true));
    return { isOver: () => over };
  };
  try {
    // No slice ran for long, so the urgent work has lost nothing yet.
    const first = begin();
    await advance(1);
    expect(first.isOver()).toBe(true);
    await advance(1);

    const second = begin();
    await advance(3);
    expect(second.isOver()).toBe(false);
    isUrgent = false;
    await advance(1);
    expect(second.isOver()).toBe(true);
    await advance(1);

    isUrgent = true;
    const third = begin();
    await advance(4);
    expect(third.isOver()).toBe(false);
    await advance(1);
    expect(third.isOver()).toBe(true);
  } finally {
    vi.useRealTimers();
  }
});

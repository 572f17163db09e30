import * as fc from "fast-check";
import { expect, it } from "vitest";
import { FIRST_WINDOW, windowAfter, type Window } from "../../../src/sync/plan/window.ts";

/** The window after this many successive jobs of the same duration. */
function after(count: number, tookMs: number, from: Window = FIRST_WINDOW): Window {
  let window = from;
  for (let index = 0; index < count; index += 1) {
    const leftMs = 1_000_000 + index * tookMs;
    window = windowAfter(window, leftMs, leftMs + tookMs, 128);
  }
  return window;
}

it("the window grows to the width while answers are quick", () => {
  expect(after(200, 100).size).toBe(128);
});

it("the window stays the same while answers are neither quick nor slow", () => {
  expect(after(200, 5000).size).toBe(FIRST_WINDOW.size);
});

it("the window shrinks to one while answers are slow", () => {
  expect(after(20, 60_000).size).toBe(1);
});

it("the window shrinks once for all jobs that left together", () => {
  let window: Window = { size: 100, shrunkMs: -Infinity };
  for (let index = 0; index < 100; index += 1) window = windowAfter(window, index, 60_000 + index, 128);
  expect(window.size).toBe(75);
});

it("the window is never below one, and never grows above the width", () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.nat(100_000), fc.nat(200_000))),
      fc.integer({ min: 1, max: 256 }),
      (works, width) => {
        let window: Window = { size: Math.min(8, width), shrunkMs: -Infinity };
        for (const [leftMs, tookMs] of works) {
          window = windowAfter(window, leftMs, leftMs + tookMs, width);
          expect(window.size).toBeGreaterThanOrEqual(1);
          expect(window.size).toBeLessThanOrEqual(width);
        }
      },
    ),
  );
});

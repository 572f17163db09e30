import { setImmediate as nextTurn } from "node:timers/promises";

/**
 * Work on many items that can be interrupted: `next` resumes it, and it returns its result at the end. A decision in steps is
 * pure nevertheless, because nothing it depends on changes between two steps.
 */
export type Steps<T> = Generator<undefined, T, undefined>;

/**
 * Items between two steps. An item takes some microseconds, so a step never blocks the loop for longer than about a
 * millisecond.
 */
export const STEP_ITEMS = 256;

/** Runs all steps at once. */
export function takeAll<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/** Runs steps as long as `goesOn` returns true. Returns whether they have ended by themselves. */
export function* stepsWhile(steps: Steps<unknown>, goesOn: () => boolean): Steps<boolean> {
  while (goesOn()) {
    if (steps.next().done === true) return true;
    yield;
  }
  return false;
}

/** Longest run of steps. With a page of a database within a step, the loop's lag stays below what a person notices. */
const SLICE_MS = 8;

/**
 * Runs the steps a slice at a time, with a turn of the loop between two slices. `onSlice` is notified of each. Throws
 * the signal's reason.
 */
export async function inSlices<T>(
  steps: Steps<T>,
  signal: AbortSignal | undefined,
  onSlice: () => void = () => undefined,
): Promise<T> {
  for (;;) {
    const endMs = performance.now() + SLICE_MS;
    do {
      const step = steps.next();
      if (step.done === true) return step.value;
    } while (performance.now() < endMs);
    onSlice();
    await nextTurn();
    signal?.throwIfAborted();
  }
}

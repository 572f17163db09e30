import { setImmediate as nextTurn } from "node:timers/promises";
import type { Steps } from "../plan/steps.ts";

/** Longest run of steps. With a page of the ledger within a step, the loop's lag stays below what a person notices. */
const SLICE_MS = 8;

/**
 * Runs the steps a slice at a time, with a turn of the loop between two slices. `onSlice` is notified of each. Throws
 * the signal's reason.
 */
export async function inSlices<T>(
  steps: Steps<T>,
  signal: AbortSignal,
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
    signal.throwIfAborted();
  }
}

/**
 * A decision over many items that can be interrupted: `next` resumes it, and it returns its result at the end. It is
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

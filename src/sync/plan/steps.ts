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

/** Sorts up to millions of items in steps: a bottom-up merge sort. Stable; leaves `items` unchanged. */
export function* sortInSteps<T>(items: readonly T[], compare: (a: T, b: T) => number): Steps<T[]> {
  let from: T[] = [];
  for (let at = 0; at < items.length; at += STEP_ITEMS) {
    for (const item of items.slice(at, at + STEP_ITEMS).sort(compare)) from.push(item);
    yield;
  }
  for (let width = STEP_ITEMS; width < from.length; width *= 2) {
    const to: T[] = [];
    for (let start = 0; start < from.length; start += 2 * width) {
      const middle = Math.min(start + width, from.length);
      yield* merge(from, start, middle, Math.min(middle + width, from.length), compare, to);
    }
    from = to;
  }
  return from;
}

/** Merges the sorted runs [start, middle) and [middle, end) of `from` into `to`. */
function* merge<T>(
  from: readonly T[],
  start: number,
  middle: number,
  end: number,
  compare: (a: T, b: T) => number,
  to: T[],
): Steps<void> {
  let left = start;
  let right = middle;
  while (left < middle || right < end) {
    // Both indexes are within `from` where they are compared.
    const takesLeft = right >= end || (left < middle && compare(from[left] as T, from[right] as T) <= 0);
    to.push(from[takesLeft ? left++ : right++] as T);
    if (to.length % STEP_ITEMS === 0) yield;
  }
}

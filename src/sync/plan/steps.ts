/**
 * A decision over many items that can be interrupted: it is resumed by `next` and says its result at the end. Pure all
 * the same, for the time between two steps changes nothing.
 */
export type Steps<T> = Generator<undefined, T, undefined>;

/** Items between two steps. One takes some microseconds, so that a step never holds a loop for longer than about a millisecond. */
export const STEP_ITEMS = 256;

/** Takes all steps at once. */
export function takeAll<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/** Sorts in steps what may be a million items: a merge sort from below. Stable; `items` is left as it is. */
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

/** Adds the sorted runs [start, middle) and [middle, end) of `from`, as one, to `to`. */
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
    // Both are within `from` where they are compared.
    const takesLeft = right >= end || (left < middle && compare(from[left] as T, from[right] as T) <= 0);
    to.push(from[takesLeft ? left++ : right++] as T);
    if (to.length % STEP_ITEMS === 0) yield;
  }
}

import { openTurnSlice, type TurnSlice } from "../../../lib/turn-slice.ts";

/** Time of a turn of the event loop for all bulk work together, before other requests get theirs. */
const SLICE_MS = 1;
/**
 * Longest time for which bulk work yields to running searches: a search needs several turns and would wait for a slice at each
 * (bench/hostile-account.ts). Bulk work gets a quarter of the event loop, however many searches run.
 */
const URGENT_FIRST_MS = 3;

/**
 * Tracks urgent work, searches, to which bulk work yields: long lists and streams of changes. `pause` resolves when a
 * piece of bulk work may run.
 */
export interface Urgent extends TurnSlice {
  during<T>(this: void, work: () => Promise<T>): Promise<T>;
}

export function openUrgent(): Urgent {
  let running = 0;
  return {
    ...openTurnSlice({ sliceMs: SLICE_MS, isUrgent: () => running > 0, urgentMsMax: URGENT_FIRST_MS }),
    during: async (work) => {
      running += 1;
      try {
        return await work();
      } finally {
        running -= 1;
      }
    },
  };
}

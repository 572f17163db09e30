/**
 * What counts as progress. Pure: the clock comes in.
 *
 * A watchdog that hears from a loop as long as it turns misses the failure that matters: a loop that turns while the work
 * stands still. So a part is alive when it moves, when it has nothing to do, or when what it waits for is somebody else's.
 */

/** What is seen of a part of the program at one look. */
export interface Pulse {
  /** Grows with everything the part does: a step of a scan, a file done, an answer that came. */
  readonly moves: number;
  /** Something is to be done now, not later. */
  readonly atWork: boolean;
  /** What stands in the way is no fault of this process: a service elsewhere is down, or refuses the key. */
  readonly waitsForOthers: boolean;
}

/** A part as it was followed so far. */
export interface Heart {
  readonly moves: number;
  /** When it last moved, or had no reason to. */
  readonly sinceMs: number;
}

/** Follows a part by one more look. `heart`: undefined at the first. */
export function beat(heart: Heart | undefined, pulse: Pulse, nowMs: number): Heart {
  const stands = heart !== undefined && pulse.moves === heart.moves && pulse.atWork && !pulse.waitsForOthers;
  return stands ? heart : { moves: pulse.moves, sinceMs: nowMs };
}

/** How long a part has stood still while there was work, in milliseconds; 0 for one that moves or rests. */
export function stoodMs(heart: Heart, nowMs: number): number {
  return nowMs - heart.sinceMs;
}

import { DELAY_MS_MIN } from "./retry.ts";

/**
 * Waits for what a disk or a service may still do, in milliseconds. They are no settings: each has its reason, and only
 * tests that are about something else make them shorter.
 */
export interface Timing {
  /**
   * Deletes that follow each other more closely than this are one burst, of which none is sent before it is over. A
   * program that empties a folder removes many files a second, on a slow disk a few.
   */
  readonly burstGapMs: number;
  /**
   * A version of an ignore file that may let through what the one in force leaves out must have rested this long: it may
   * be half-written. A busy machine or a slow script takes a second or two between two lines. One pass waits this long too.
   */
  readonly looserRulesMs: number;
  /** Two lists that differ are followed by a third after this: a service that has just started may know more a moment later. */
  readonly listAgainMs: number;
  /** First wait after a failure; it doubles with each further one. */
  readonly retryMs: number;
  /**
   * A 404 may come from a replica that does not know the resource yet, or from a service that starts. The request is sent
   * again after these times; what is still said then is believed.
   */
  readonly goneAgainMs: readonly number[];
  /** The same of a collection's list. To believe it makes all files anew, so the question is asked more often. */
  readonly missingAgainMs: readonly number[];
  /** A resource made less than this ago may not be known everywhere: a 404 is believed only when it is said again after that. */
  readonly knownAfterMs: number;
  /**
   * A delete that ended by such words alone is sent once more after each of these times, in the background: nothing else
   * finds a resource that was denied falsely, and a service may do that for minutes.
   */
  readonly deletedAgainMs: readonly number[];
  /** A request that got no answer may be worked on still: the list is asked this long after it. */
  readonly gatherMs: number;
}

/** The waits of a daemon. */
export const TIMING: Timing = {
  burstGapMs: 2000,
  looserRulesMs: 5000,
  listAgainMs: 1000,
  retryMs: DELAY_MS_MIN,
  goneAgainMs: [250, 1000],
  missingAgainMs: [250, 500, 1000, 2000, 4000, 8000, 15_000],
  knownAfterMs: 15_000,
  deletedAgainMs: [60_000, 300_000],
  gatherMs: 250,
};

/** A file that is written to without a pause is read this often all the same, and not more often. */
export const CEILING_MS = 60_000;

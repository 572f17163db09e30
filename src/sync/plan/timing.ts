import { DELAY_MS_MIN } from "./retry.ts";

/**
 * Waits for what a disk or a service may still do, in milliseconds. They are not settings: each has its reason, and
 * only tests about something else shorten them.
 */
export const TIMING = {
  /**
   * Deletes that follow each other within this time form one burst. None is sent before the burst is over. A program
   * that empties a folder removes many files a second, on a slow disk a few.
   */
  burstGapMs: 2000,
  /**
   * How long a changed ignore file must rest before it takes effect: it may be half-written, and then admits what the
   * version in force leaves out. A busy machine or a slow script takes a second or two between two lines. A pass waits
   * this long too.
   */
  changedRulesMs: 5000,
  /**
   * When two lists differ, a third follows after this time: a service that has just started may know more a moment
   * later.
   */
  listAgainMs: 1000,
  /** First wait after a failure; it doubles with each further one. */
  retryMs: DELAY_MS_MIN,
  /**
   * A 404 may come from a replica that does not know the resource yet, or from a service that is starting. The request
   * is repeated after these times, and the last answer is believed.
   */
  goneAgainMs: [250, 1000, 4000],
  /** The same for a collection's list. Believing it creates all files again, so the request is repeated more often. */
  missingAgainMs: [250, 500, 1000, 2000, 4000, 8000, 15_000],
  /** A service may still be processing a request that got no answer. The list is fetched this long after it. */
  gatherMs: 250,
  /** A service begins to take metadata, or to read mails, with another version, so it is asked this often. */
  metadataAgainMs: 24 * 3_600_000,
};

export type Timing = Readonly<typeof TIMING>;

/** A file that is written to without a pause is sent as it is after this time. Programs that write in steps are done by then. */
export const CEILING_MS = 60_000;

/** A path to which something happens all the time is looked at this often. */
export const LOOK_MS = 2000;

/**
 * A file's versions follow each other at once up to this many, then one in each gap: a log costs a few requests a minute, and
 * a person who saves several times in a row does not wait.
 */
export const VERSIONS_AT_ONCE = 4;
export const VERSION_GAP_MS = 10_000;

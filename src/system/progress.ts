/**
 * Detects hangs. Pure: the clock is an argument.
 *
 * A watchdog fed by a running event loop misses the failure that matters: the loop runs while the work makes no progress.
 * So a part counts as alive when it progresses, has nothing to do, or waits for something outside this process.
 */

/** One sample of a part of the program. */
export interface ProgressSample {
  /** Grows with each unit of work: a step of a scan, a finished file, an answer. */
  readonly moves: number;
  /** Whether there is work to do now. */
  readonly atWork: boolean;
  /** Whether the obstacle lies outside this process: a remote service is down, or refuses the key. */
  readonly waitsForOthers: boolean;
}

/** Progress of a part over all samples. */
export interface Progress {
  readonly moves: number;
  /** When it last progressed or was idle. */
  readonly sinceMs: number;
}

/** Adds a sample. `progress` is undefined for the first one. */
export function addSample(progress: Progress | undefined, sample: ProgressSample, nowMs: number): Progress {
  const stands =
    progress !== undefined && sample.moves === progress.moves && sample.atWork && !sample.waitsForOthers;
  return stands ? progress : { moves: sample.moves, sinceMs: nowMs };
}

/** How long a part has made no progress although there was work, in milliseconds. */
export function stalledMs(progress: Progress, nowMs: number): number {
  return nowMs - progress.sinceMs;
}

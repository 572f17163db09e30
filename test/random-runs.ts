/** The share of its random runs that a test takes: a quarter in `npm test`, all in the long suite and by itself. */
const SHARE = Number(process.env["KBSYNC_TEST_RUNS_SHARE"] ?? 1);

/** Scales a number of random runs. Each run draws new cases, so every run of `npm test` checks others. */
export function randomRuns(all: number): number {
  return Math.ceil(all * SHARE);
}

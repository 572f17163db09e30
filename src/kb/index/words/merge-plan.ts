/** Runs of one level that are merged: a chunk is rewritten about once for each factor of eight of its scope. */
const RUNS_MERGED = 8;
/** Chunks of the smallest runs; see `levelOf`. */
const LEVEL_CHUNKS = 512;

/**
 * Returns how many of the last runs are due to be merged into one, given the chunks of all runs of a scope; 0: none. Without
 * a merge that is due there are fewer than 8 × n runs, n being the number of levels. Pure.
 */
export function runsToMerge(rows: readonly number[]): number {
  const levels = rows.map(levelOf);
  const top = levels.reduce((a, b) => Math.max(a, b), 0);
  for (let level = 0; level <= top; level++) {
    const last = levels.slice(levels.findLastIndex((of) => of > level) + 1);
    const ofLevel = last.filter((of) => of === level).length;
    // The second rule is for writes of alternating sizes, whose runs have several levels.
    if (ofLevel >= RUNS_MERGED || last.length >= RUNS_MERGED * (level + 1)) return last.length;
  }
  return 0;
}

/** Each level has eight times as many chunks as the one below. */
function levelOf(rows: number): number {
  return Math.max(0, Math.floor(Math.log2(rows / LEVEL_CHUNKS) / Math.log2(RUNS_MERGED)));
}

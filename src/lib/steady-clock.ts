/**
 * A clock for waits: it runs with the one given, follows when that is set ahead, and goes on from where it was when that is set
 * back. What passed between two readings around a step back does not count, so a wait is late by that at most. Its time is no
 * date: it is ahead of the clock by all steps back since it was made.
 */
export function steadyClock(nowMs: () => number): () => number {
  let lastMs = -Infinity;
  let aheadMs = 0;
  return () => {
    const clockMs = nowMs();
    aheadMs = Math.max(aheadMs, lastMs - clockMs);
    lastMs = clockMs + aheadMs;
    return lastMs;
  };
}

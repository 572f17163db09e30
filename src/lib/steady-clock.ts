/**
 * A clock for waits, which is never set back: it follows the time of day forward (after a suspend, or when it is
 * corrected), and goes on at the pace of `elapsed` when that is set back, so that no wait grows longer by it. Its time is
 * no date: it is ahead of the clock by all steps back since it was made. Whole milliseconds, as tables store them.
 */
export function steadyClock(
  wall: () => number = () => Date.now(),
  elapsed: () => number = () => performance.now(),
): () => number {
  let steadyMs = wall();
  let lastMs = elapsed();
  return () => {
    const nowMs = elapsed();
    steadyMs = Math.max(wall(), steadyMs + Math.max(0, nowMs - lastMs));
    lastMs = nowMs;
    return Math.floor(steadyMs);
  };
}

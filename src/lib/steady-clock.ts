/**
 * Returns a clock for waits that never goes back. It follows the time of day forward (after a suspend or a correction) and
 * advances with `elapsed` when the time of day is set back, so no wait grows. Its time is not a date: it runs ahead by all
 * backward steps since it was created. Whole milliseconds, as tables store them.
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

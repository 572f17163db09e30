/**
 * The time of day as a clock that is never set back: it follows the system's clock forward (after a suspend, or when it
 * is corrected) and goes on at its own pace when that one is set back, so that no wait grows longer by it.
 */
export function steadyClock(
  wall: () => number = () => Date.now(),
  elapsed: () => number = () => performance.now(),
): () => number {
  let toldMs = wall();
  let atMs = elapsed();
  return () => {
    const nowMs = elapsed();
    toldMs = Math.max(wall(), toldMs + (nowMs - atMs));
    atMs = nowMs;
    return toldMs;
  };
}

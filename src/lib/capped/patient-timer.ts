/** Most of the waits that are added to a time, as a multiple of it: a machine without any time left must not hold a request for ever. */
const WAITS_MAX = 9;

/**
 * Calls `onEnd` after so long, in which waits do not count. `waitedMs` tells how long has been waited in all since some moment
 * in the past; it is looked at whenever the time seems to be over.
 */
export function startPatientTimer(
  timeoutMs: number,
  waitedMs: () => number,
  onEnd: () => void,
): { stop(): void } {
  let knownMs = waitedMs();
  let leftMs = WAITS_MAX * timeoutMs;
  let timer = setTimeout(look, timeoutMs);

  function look(): void {
    const nowMs = waitedMs();
    const moreMs = Math.min(leftMs, Math.ceil(nowMs - knownMs));
    if (moreMs <= 0) {
      onEnd();
      return;
    }
    knownMs = nowMs;
    leftMs -= moreMs;
    timer = setTimeout(look, moreMs);
  }
  return { stop: () => clearTimeout(timer) };
}

/** Limit of the extensions, as a multiple of the timeout: an overloaded machine must not hold a request for ever. */
const WAITS_MAX = 9;

/**
 * Calls `onEnd` after `timeoutMs`, extended by waits. `waitedMs` returns the total time waited since a fixed moment; it is
 * read each time the timer expires.
 */
export function startPatientTimer(
  timeoutMs: number,
  waitedMs: () => number,
  onEnd: () => void,
): { stop(): void } {
  let knownMs = waitedMs();
  let leftMs = WAITS_MAX * timeoutMs;
  let timer = setTimeout(check, timeoutMs);

  function check(): void {
    const nowMs = waitedMs();
    const moreMs = Math.min(leftMs, Math.ceil(nowMs - knownMs));
    if (moreMs <= 0) {
      onEnd();
      return;
    }
    knownMs = nowMs;
    leftMs -= moreMs;
    timer = setTimeout(check, moreMs);
  }
  return { stop: () => clearTimeout(timer) };
}

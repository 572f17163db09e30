import { setTimeout as pause } from "node:timers/promises";
import { EndpointRefusal } from "./endpoint.ts";
import { failureKind, requestedWaitMs } from "./model-failure.ts";

/** Timeouts of a model call with retries. */
export interface RetryLimits {
  /** Timeout of one attempt, in milliseconds. */
  readonly attemptMs: number;
  /** Timeout of all attempts and the waits between them. A hanging attempt is retried only if this exceeds `attemptMs`. */
  readonly totalMs: number;
  /** First backoff if the endpoint requests no wait; doubles with each attempt. Default 500 ms. */
  readonly delayMs?: number | undefined;
}

const DELAY_MS = 500;
/** Longest wait that an endpoint may request. A longer one counts as an outage. */
const RETRY_AFTER_MS_MAX = 60_000;

/**
 * Calls `run` and retries while the endpoint is busy, unreachable or hangs, up to `attempts` attempts. Waits at least as long
 * as the endpoint requests. The signal passed to `run` aborts with `signal` and at the timeout of the attempt. Throws the error
 * of the last attempt, a `TimeoutError` if it timed out, or the reason of `signal`.
 */
export async function withRetries<T>(
  { attemptMs, totalMs, delayMs = DELAY_MS }: RetryLimits,
  attempts: number,
  signal: AbortSignal,
  run: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const endMs = performance.now() + totalMs;
  for (let attempt = 1; ; attempt++) {
    const timeout = new AbortController();
    const timeoutMs = Math.max(1, Math.min(attemptMs, endMs - performance.now()));
    const timer = setTimeout(
      () => timeout.abort(new DOMException("the endpoint did not answer", "TimeoutError")),
      timeoutMs,
    );
    try {
      return await run(AbortSignal.any([signal, timeout.signal]));
    } catch (error) {
      signal.throwIfAborted();
      const failure: unknown = timeout.signal.aborted ? timeout.signal.reason : error;
      const waitMs = requestedWaitMs(failure) ?? delayMs * 2 ** (attempt - 1);
      const isTooLong = waitMs > RETRY_AFTER_MS_MAX || performance.now() + waitMs >= endMs;
      if (attempt >= attempts || isTooLong || !isTransient(failure)) throw failure;
      await pause(waitMs, undefined, { signal });
    } finally {
      clearTimeout(timer);
    }
  }
}

/** Whether a retry may help. An endpoint may deny it in a header: an exhausted budget is a 429, too. */
function isTransient(failure: unknown): boolean {
  if (failure instanceof EndpointRefusal && failure.headers?.get("x-should-retry") === "false") return false;
  return failureKind(failure) === "unreachable";
}

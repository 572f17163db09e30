import { setTimeout as pause } from "node:timers/promises";
import { APIError } from "openai";
import { failureKind, requestedWaitMs } from "./model-failure.ts";

/** How long a model is waited for. */
export interface Patience {
  /** For one try, in milliseconds. */
  readonly tryMs: number;
  /** For all tries and the waits between them. One that hangs is tried again only where this is longer than one try. */
  readonly allMs: number;
}

/** First wait between two tries where the endpoint asks for none; doubled for the next. */
const DELAY_MS = 500;
/** Longest wait that an endpoint may ask for; who wants more is taken for not there. */
const RETRY_AFTER_MS_MAX = 60_000;

/**
 * Asks, and asks again where the endpoint is busy, cannot be reached or hangs, no sooner than it asks for, `attempts` times
 * at most. `ask` gets a signal that fires when its time is over or `signal` does, and whose time is over with its promise.
 * Throws what the last try threw, a `TimeoutError` where its time was over, and the signal's reason.
 */
export async function askPatiently<T>(
  { tryMs, allMs }: Patience,
  attempts: number,
  signal: AbortSignal,
  ask: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const endMs = performance.now() + allMs;
  for (let attempt = 1; ; attempt++) {
    const patience = new AbortController();
    const limitMs = Math.max(1, Math.min(tryMs, endMs - performance.now()));
    const limit = setTimeout(
      () => patience.abort(new DOMException("no answer came", "TimeoutError")),
      limitMs,
    );
    try {
      return await ask(AbortSignal.any([signal, patience.signal]));
    } catch (error) {
      signal.throwIfAborted();
      const failure: unknown = patience.signal.aborted ? patience.signal.reason : error;
      const waitMs = requestedWaitMs(failure) ?? DELAY_MS * 2 ** (attempt - 1);
      const isTooLong = waitMs > RETRY_AFTER_MS_MAX || performance.now() + waitMs >= endMs;
      if (attempt >= attempts || isTooLong || !isPassing(failure)) throw failure;
      await pause(waitMs, undefined, { signal });
    } finally {
      clearTimeout(limit);
    }
  }
}

/** Whether asking again may help. An endpoint that knows better says so: out of money is a 429, too. */
function isPassing(failure: unknown): boolean {
  if (failure instanceof APIError && failure.headers?.get("x-should-retry") === "false") return false;
  return failureKind(failure) === "unreachable";
}

import type { Trash } from "./trash.ts";

/** Prunes a trash at the start and once a day. */
export interface Pruning {
  /** Stops at the next file. Resolves when nothing is written any more. */
  stop(): Promise<void>;
}

/** Interval at which the daemon removes expired texts. */
const PRUNE_EVERY_MS = 24 * 3_600_000;

/** Starts pruning. Failures are reported to `onError` and retried a day later. */
export function startPruning(trash: Pick<Trash, "prune">, onError: (error: Error) => void): Pruning {
  const stopping = new AbortController();
  let running = Promise.resolve();
  const prune = (): void => {
    running = running
      .then(() => trash.prune(stopping.signal))
      .catch((error: unknown) => {
        if (!stopping.signal.aborted) onError(error instanceof Error ? error : new Error(String(error)));
      });
  };
  prune();
  const timer = setInterval(prune, PRUNE_EVERY_MS);
  timer.unref();
  return {
    stop: async () => {
      clearInterval(timer);
      stopping.abort();
      await running;
    },
  };
}

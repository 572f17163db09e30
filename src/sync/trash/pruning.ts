import type { Trash } from "./trash.ts";

/** Pruning of a trash, now and once a day. */
export interface Pruning {
  /** Ends it: what is under way stops at the next file. Resolves when nothing is written any more. */
  stop(): Promise<void>;
}

/** How often a daemon looks for texts whose days are over. */
const PRUNE_EVERY_MS = 24 * 3_600_000;

/** Starts it. What fails is told, and tried again a day later. */
export function startPruning(trash: Pick<Trash, "prune">, onError: (error: Error) => void): Pruning {
  const stopping = new AbortController();
  let underWay = Promise.resolve();
  const prune = (): void => {
    underWay = underWay
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
      await underWay;
    },
  };
}

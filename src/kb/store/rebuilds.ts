import { codeOf } from "../../lib/failure.ts";

/** Starts the rebuild of an account's index when a call finds it damaged, once at a time. */
export interface Rebuilds {
  /** Passes a call through. */
  watch<T>(accountId: string, call: Promise<T>): Promise<T>;
  /** Ends the rebuilds after their current step. */
  close(): Promise<void>;
}

/** A rebuild that fails starts again with the next call that finds the damage. */
export function openRebuilds(
  rebuild: (accountId: string, signal: AbortSignal) => Promise<unknown>,
): Rebuilds {
  const stop = new AbortController();
  const running = new Map<string, Promise<unknown>>();
  return {
    watch: async (accountId, call) => {
      try {
        return await call;
      } catch (error) {
        if (codeOf(error) === "index_damaged" && !running.has(accountId) && !stop.signal.aborted) {
          const ended = rebuild(accountId, stop.signal)
            .catch(() => undefined)
            .finally(() => running.delete(accountId));
          running.set(accountId, ended);
        }
        throw error;
      }
    },
    close: async () => {
      stop.abort();
      await Promise.all(running.values());
    },
  };
}

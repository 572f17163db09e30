/** Lets requests wait, for a limited time, for something that has a key, such as the end of a job. */
export interface Waits {
  /**
   * Waits for the next `notify` of the key; read the state afterwards to learn what happened. `ended` resolves then, after
   * `timeoutMs`, and at once after `release`. The caller must always call `stop`.
   */
  listen(key: string, timeoutMs: number): { readonly ended: Promise<void>; stop(): void };
  notify(this: void, key: string): void;
  /** Notifies every key: anything may have happened. */
  notifyAll(): void;
  /** Ends all current and future waits: the service is closing. */
  release(): void;
}

/** Each listener is a request in flight; the server bounds their number. */
export function openWaits(): Waits {
  const waiting = new Map<string, Set<() => void>>();
  let released = false;
  const notify = (key: string): void => {
    for (const resolve of waiting.get(key) ?? []) resolve();
  };
  const notifyAll = (): void => {
    for (const key of waiting.keys()) notify(key);
  };
  return {
    listen: (key, timeoutMs) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      if (released || timeoutMs <= 0) resolve();
      // Node warns on standard error of a negative delay.
      const timer = setTimeout(resolve, Math.max(0, timeoutMs));
      const listeners = waiting.get(key) ?? new Set();
      waiting.set(key, listeners.add(resolve));
      return {
        ended: promise,
        stop: () => {
          clearTimeout(timer);
          listeners.delete(resolve);
          if (listeners.size === 0 && waiting.get(key) === listeners) waiting.delete(key);
        },
      };
    },
    notify,
    notifyAll,
    release: () => {
      released = true;
      notifyAll();
    },
  };
}

/** Identifies a resource across all accounts. */
export function jobKey({ accountId, id }: { readonly accountId: string; readonly id: string }): string {
  return `${accountId}/${id}`;
}

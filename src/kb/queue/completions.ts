/** Requests that wait a while for the end of work that goes on without them. */
export interface JobCompletions {
  /**
   * Waits for the next job of a resource that ends or is postponed; which of the two the resource's state says, to be read
   * after this. `ended` resolves then, after `timeoutMs`, and at once after `release`. `stop` must be called in any case.
   */
  listen(key: string, timeoutMs: number): { readonly ended: Promise<void>; stop(): void };
  notify(this: void, key: string): void;
  /** Ends all waits, those to come too: the service is closing, and the next start does what is queued. */
  release(): void;
}

/** Each listener is a request in flight, of which the server takes no more than it can hold. */
export function openJobCompletions(): JobCompletions {
  const waiting = new Map<string, Set<() => void>>();
  let released = false;
  const notify = (key: string): void => {
    for (const go of waiting.get(key) ?? []) go();
  };
  return {
    listen: (key, timeoutMs) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      if (released || timeoutMs <= 0) resolve();
      const timer = setTimeout(resolve, timeoutMs);
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
    release: () => {
      released = true;
      for (const key of waiting.keys()) notify(key);
    },
  };
}

/** Names a resource among those of all accounts. */
export function jobKey({ accountId, id }: { readonly accountId: string; readonly id: string }): string {
  return `${accountId}/${id}`;
}

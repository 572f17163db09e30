/** Requests that wait a while for the end of work that goes on without them. */
export interface JobEnds {
  /**
   * Listens for the next job of a resource that ends or is put off; which of them it was the resource's state tells, to
   * be read after this. `ended` resolves then, after `timeoutMs`, and at once when nobody may wait any more. To be
   * stopped in any case.
   */
  listen(key: string, timeoutMs: number): { readonly ended: Promise<void>; stop(): void };
  tell(this: void, key: string): void;
  /** Lets all go, and whoever comes: the service is closing, and what is queued is done by the next start. */
  release(): void;
}

/** Nobody waits. Who does is a request under way, of which the server takes no more than it can hold. */
export function openJobEnds(): JobEnds {
  const waiting = new Map<string, Set<() => void>>();
  let released = false;
  const tell = (key: string): void => {
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
    tell,
    release: () => {
      released = true;
      for (const key of waiting.keys()) tell(key);
    },
  };
}

/** Names a resource among those of all accounts. */
export function jobKey({ accountId, id }: { readonly accountId: string; readonly id: string }): string {
  return `${accountId}/${id}`;
}

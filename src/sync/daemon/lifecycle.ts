/** The end of a daemon, and the callers that wait for a condition in it. */
export type Lifecycle = ReturnType<typeof openLifecycle>;

/** Opens the lifecycle of a daemon. `describe` turns any fatal error into one for a person. */
export function openLifecycle(describe: (error: unknown) => Error) {
  const waiters = new Set<() => void>();
  const listeners: ((error: Error) => void)[] = [];
  let fatal: Error | undefined;
  let ending = false;

  const changed = (): void => {
    for (const check of waiters) check();
  };

  return {
    /** The error that ended the daemon; undefined while it runs, and after a regular stop. */
    fatal: (): Error | undefined => fatal,
    isEnding: (): boolean => ending,
    /** Starts a regular stop. From here on no error is fatal. */
    end: (): void => {
      ending = true;
      changed();
    },
    /** Ends the daemon with an error. Only the first one counts, and none after the stop started. */
    fail: (error: unknown): void => {
      if (ending || fatal !== undefined) return;
      fatal = describe(error);
      for (const listener of listeners) listener(fatal);
      changed();
    },
    /** Adds a listener for the fatal error, which is called once. */
    onFatal: (listener: (error: Error) => void): void => {
      listeners.push(listener);
    },
    /** Makes all waiting callers check their conditions again. */
    changed,
    /** Resolves when the condition holds. Throws the fatal error or the signal's reason. */
    until: async (condition: () => boolean, signal?: AbortSignal): Promise<void> => {
      const isOver = (): boolean => fatal !== undefined || signal?.aborted === true || condition();
      if (!isOver()) {
        const { promise, resolve } = Promise.withResolvers<void>();
        // There may be thousands of changes per second, so each costs one check of the condition.
        const check = (): void => {
          if (isOver()) resolve();
        };
        waiters.add(check);
        signal?.addEventListener("abort", check, { once: true });
        await promise;
        waiters.delete(check);
        signal?.removeEventListener("abort", check);
      }
      if (fatal !== undefined) throw fatal;
      if (!condition()) signal?.throwIfAborted();
    },
  };
}

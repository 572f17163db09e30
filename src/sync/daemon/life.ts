/** How a daemon ends, and who waits for something to happen in it. */
export interface Life {
  /** What ended the daemon; undefined while it lives, and when it was asked to end. */
  fatal(): Error | undefined;
  isEnding(): boolean;
  /** From here on nothing is fatal any more: the daemon ends as it was asked to. */
  end(): void;
  /** Nothing more can be done. The first error counts, and none after the end began. */
  fail(error: unknown): void;
  /** The listener is told what ends the daemon, once. */
  onFatal(listener: (error: Error) => void): void;
  /** Has everybody who waits look again. */
  changed(): void;
  /** Resolves when the condition holds. Throws what ended the daemon, or the signal's reason. */
  until(condition: () => boolean, signal?: AbortSignal): Promise<void>;
}

/** A daemon begins to live. `inWords` makes of whatever ends it an error for a person. */
export function beginLife(inWords: (error: unknown) => Error): Life {
  const waiters = new Set<() => void>();
  const listeners: ((error: Error) => void)[] = [];
  let fatal: Error | undefined;
  let ending = false;

  const changed = (): void => {
    for (const look of waiters) look();
  };

  return {
    fatal: () => fatal,
    isEnding: () => ending,
    end: () => {
      ending = true;
      changed();
    },
    fail: (error) => {
      if (ending || fatal !== undefined) return;
      fatal = inWords(error);
      for (const listener of listeners) listener(fatal);
      changed();
    },
    onFatal: (listener) => {
      listeners.push(listener);
    },
    changed,
    until: async (condition, signal) => {
      const isOver = (): boolean => fatal !== undefined || signal?.aborted === true || condition();
      if (!isOver()) {
        const { promise, resolve } = Promise.withResolvers<void>();
        // Changes come by the thousand a second: each costs a look at the condition, and no more.
        const look = (): void => {
          if (isOver()) resolve();
        };
        waiters.add(look);
        signal?.addEventListener("abort", look, { once: true });
        await promise;
        waiters.delete(look);
        signal?.removeEventListener("abort", look);
      }
      if (fatal !== undefined) throw fatal;
      if (!condition()) signal?.throwIfAborted();
    },
  };
}

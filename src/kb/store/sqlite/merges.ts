/** A part of the index that is merged in steps, each in a transaction of its own. See `WordWrites` and `CodeWrites`. */
export interface Merging {
  isDue(): boolean;
  step(): boolean;
  purge(): () => boolean;
  abandon(): void;
}

/** Runs the merges of the index between the writes of a store. */
export interface Merges {
  /** Passes a write through, and runs the merges that it makes due. */
  after<T>(this: void, write: Promise<T>): Promise<T>;
  /** Merges parts until nothing is left of removed chunks. Rejects with the store's failure. */
  purge(this: void): Promise<void>;
  /** Rebuilds the damaged parts of the index of words. Rejects with the store's failure. */
  rebuild(this: void): Promise<void>;
  /** Begins no further step. */
  close(this: void): void;
}

export function openMerges(
  parts: readonly Merging[],
  rebuild: () => () => boolean,
  enqueue: (step: () => boolean) => Promise<boolean>,
): Merges {
  const state = { isClosed: false, isRunning: false };
  /** The first part that has something to do makes the step. */
  const step = (): boolean => parts.some((part) => part.isDue() && part.step());

  /** Makes steps until they return false. */
  async function run(steps: () => boolean): Promise<void> {
    try {
      for (let isDue = true; isDue && !state.isClosed;) isDue = await enqueue(steps);
    } catch (error) {
      for (const part of parts) part.abandon();
      throw error;
    }
  }
  /** A merge that fails is tried again after further writes: the index is sound without it. */
  const startIfDue = (): void => {
    if (state.isClosed || state.isRunning || !parts.some((part) => part.isDue())) return;
    state.isRunning = true;
    run(step)
      .catch(() => undefined)
      .finally(() => {
        state.isRunning = false;
      });
  };
  startIfDue();

  return {
    after: async (write) => {
      const written = await write;
      startIfDue();
      return written;
    },
    purge: async () => {
      for (const part of parts) await run(part.purge());
    },
    rebuild: () => run(rebuild()),
    close: () => {
      state.isClosed = true;
    },
  };
}

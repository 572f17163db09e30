import type { WordWrites } from "./word-writes.ts";

/** Runs the merges of the index of words between the writes of a store. */
export interface WordMerges {
  /** Passes a write through, and runs the merges that it makes due. */
  after<T>(this: void, write: Promise<T>): Promise<T>;
  /** Merges parts until nothing is left of removed chunks. Rejects with the store's failure. */
  purge(this: void): Promise<void>;
  /** Begins no further step. */
  close(this: void): void;
}

export function openWordMerges(
  words: Pick<WordWrites, "isDue" | "step" | "purge" | "abandon">,
  enqueue: (step: () => boolean) => Promise<boolean>,
): WordMerges {
  const state = { isClosed: false, isRunning: false };

  /** Makes steps until they return false. */
  async function run(step: () => boolean): Promise<void> {
    try {
      for (let isDue = true; isDue && !state.isClosed;) isDue = await enqueue(step);
    } catch (error) {
      words.abandon();
      throw error;
    }
  }
  /** A merge that fails is tried again after further writes: the index is sound without it. */
  const startIfDue = (): void => {
    if (state.isClosed || state.isRunning || !words.isDue()) return;
    state.isRunning = true;
    run(words.step)
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
    purge: () => run(words.purge()),
    close: () => {
      state.isClosed = true;
    },
  };
}

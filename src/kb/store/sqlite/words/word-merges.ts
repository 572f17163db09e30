import type { WordWrites } from "./word-writes.ts";

/** Runs the merges of the index of words between the writes of a store. */
export interface WordMerges {
  /** Passes a write through, and runs the merges that it makes due. */
  after<T>(this: void, write: Promise<T>): Promise<T>;
  /** Merges all parts with removed chunks. Resolves when nothing of those is left; rejects with the store's failure. */
  purge(this: void): Promise<void>;
  /** Begins no further step. */
  close(this: void): void;
}

export function openWordMerges(
  words: Pick<WordWrites, "isDue" | "step" | "purge" | "abandon">,
  enqueue: (step: () => boolean) => Promise<boolean>,
): WordMerges {
  const state = { isClosed: false };
  let running: Promise<void> | undefined;

  /** Makes steps until none is due. */
  async function run(): Promise<void> {
    try {
      for (let isDue = true; isDue && !state.isClosed;) isDue = await enqueue(words.step);
    } catch (error) {
      words.abandon();
      throw error;
    } finally {
      running = undefined;
    }
  }
  const start = (): Promise<void> => (running ??= run());
  /** A merge that fails is tried again after the next write: the index is sound without it. */
  const startIfDue = (): void => {
    if (!state.isClosed && words.isDue()) start().catch(() => undefined);
  };
  startIfDue();

  return {
    after: async (write) => {
      const written = await write;
      startIfDue();
      return written;
    },
    purge: async () => {
      await running?.catch(() => undefined);
      words.purge();
      await start();
    },
    close: () => {
      state.isClosed = true;
    },
  };
}

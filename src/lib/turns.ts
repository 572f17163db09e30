/** Serialises work under the same key in the order of arrival. Different keys run concurrently. */
export interface Turns {
  run<T>(key: string, work: () => Promise<T>): Promise<T>;
  /** Keys with work running or waiting. */
  size(): number;
}

/** Creates an empty set of turns. A failure does not affect the work behind it. */
export function openTurns(): Turns {
  const last = new Map<string, Promise<unknown>>();
  return {
    size: () => last.size,
    run: (key, work) => {
      const before = last.get(key);
      const mine = before === undefined ? work() : before.then(work, work);
      last.set(key, mine);
      const leave = (): void => {
        // Only the newest clears the key: otherwise later work still waits behind it.
        if (last.get(key) === mine) last.delete(key);
      };
      mine.then(leave, leave);
      return mine;
    },
  };
}

/** Work under the same key runs one after another, in the order of arrival; other keys run side by side. */
export interface Turns {
  run<T>(key: string, work: () => Promise<T>): Promise<T>;
  /** Keys with work running or waiting. */
  size(): number;
}

/** Makes an empty set of turns. A failure of one work does not touch the next. */
export function openTurns(): Turns {
  const last = new Map<string, Promise<unknown>>();
  return {
    size: () => last.size,
    run: (key, work) => {
      const before = last.get(key);
      const mine = before === undefined ? work() : before.then(work, work);
      last.set(key, mine);
      const leave = (): void => {
        // Only the newest may clear the key: a later work still waits behind it otherwise.
        if (last.get(key) === mine) last.delete(key);
      };
      mine.then(leave, leave);
      return mine;
    },
  };
}

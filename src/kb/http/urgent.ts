/** Tracks urgent work, searches, to which bulk work yields. */
export interface Urgent {
  during<T>(this: void, work: () => Promise<T>): Promise<T>;
  isRunning(this: void): boolean;
}

export function openUrgent(): Urgent {
  let running = 0;
  return {
    during: async (work) => {
      running += 1;
      try {
        return await work();
      } finally {
        running -= 1;
      }
    },
    isRunning: () => running > 0,
  };
}

/** What others make way for while it is under way, as somebody waits for each answer: searches. */
export interface Urgent {
  during<T>(this: void, work: () => Promise<T>): Promise<T>;
  isUnderWay(this: void): boolean;
}

export function openUrgent(): Urgent {
  let underWay = 0;
  return {
    during: async (work) => {
      underWay += 1;
      try {
        return await work();
      } finally {
        underWay -= 1;
      }
    },
    isUnderWay: () => underWay > 0,
  };
}

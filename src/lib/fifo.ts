/** A list that is filled at its end and emptied from its head. */
export interface Fifo<T> {
  push(item: T): void;
  peek(): T | undefined;
  shift(): T | undefined;
  length(): number;
}

/** Opens an empty list. Its head leaves in constant time; `Array.shift` would move a hundred thousand items each time. */
export function openFifo<T>(): Fifo<T> {
  let items: (T | undefined)[] = [];
  let head = 0;
  return {
    push: (item) => {
      items.push(item);
    },
    peek: () => items[head],
    shift: () => {
      const item = items[head];
      if (head === items.length) return undefined;
      items[head] = undefined; // What has left must not be kept in memory.
      head += 1;
      if (head < 1024 || head * 2 < items.length) return item;
      items = items.slice(head);
      head = 0;
      return item;
    },
    length: () => items.length - head,
  };
}

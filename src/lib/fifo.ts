/** A first-in, first-out list. */
export interface Fifo<T> {
  push(item: T): void;
  peek(): T | undefined;
  shift(): T | undefined;
  length(): number;
}

/** Opens an empty list. `shift` takes amortised constant time; `Array.shift` moves all remaining items. */
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
      items[head] = undefined; // Releases the item's memory.
      head += 1;
      if (head < 1024 || head * 2 < items.length) return item;
      items = items.slice(head);
      head = 0;
      return item;
    },
    length: () => items.length - head,
  };
}

/** Chance that is the same every time: a stream of numbers that a word begins. */
export interface Random {
  /** In [0, 1). */
  next(): number;
  /** A whole number from 0 to below `count`. */
  below(count: number): number;
  /** Within [from, to). */
  between(from: number, to: number): number;
  chance(probability: number): boolean;
  pick<T>(items: readonly T[]): T;
  /** So many hexadecimal digits. */
  hex(digits: number): string;
}

/** Begins a stream. Streams of different words have nothing to do with each other. */
export function openRandom(word: string): Random {
  let state = hashOf(word);
  // Mulberry32: one multiplication chain a number, good enough to draw histories with.
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (count: number): number => Math.floor(next() * count);
  return {
    next,
    below,
    between: (from, to) => from + next() * (to - from),
    chance: (probability) => next() < probability,
    pick: (items) => {
      const item = items[below(items.length)];
      if (item === undefined) throw new Error("nothing to pick from");
      return item;
    },
    hex: (digits) => Array.from({ length: digits }, () => below(16).toString(16)).join(""),
  };
}

/** 32 bits of a text (FNV-1a with a last stir). */
export function hashOf(text: string, from = 0x811c9dc5): number {
  let mixed = from;
  for (let at = 0; at < text.length; at += 1) mixed = Math.imul(mixed ^ text.charCodeAt(at), 0x01000193);
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x45d9f3b);
  return (mixed ^ (mixed >>> 13)) | 0;
}

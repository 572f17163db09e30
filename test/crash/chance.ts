/** Chance that a number decides, so that a run that failed can be had again. */
export interface Chance {
  /** In [0, 1). */
  next(): number;
  /** A whole number in [0, limit). */
  below(limit: number): number;
  pick<T>(items: readonly T[]): T;
  happens(probability: number): boolean;
}

/** Starts the series of a seed (mulberry32: small, and random enough to choose faults by). */
export function openChance(seed: number): Chance {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (limit: number): number => Math.floor(next() * limit);
  return {
    next,
    below,
    pick: (items) => {
      const item = items[below(items.length)];
      if (item === undefined) throw new Error("nothing to pick from");
      return item;
    },
    happens: (probability) => next() < probability,
  };
}

/** A whole number of the environment, to run more rounds than the few that a check takes time for. */
export function wholeNumberOf(name: string, otherwise: number): number {
  const text = process.env[name];
  if (text === undefined || text === "") return otherwise;
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 0)
    throw new Error(`${name}: expected a whole number, got ${text}`);
  return value;
}

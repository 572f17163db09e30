/** A map by text that grows in small pieces. Iterates in no order. */
export interface TextMap<T> {
  get(key: string): T | undefined;
  has(key: string): boolean;
  set(key: string, value: T): void;
  delete(key: string): void;
  entries(): IterableIterator<[string, T]>;
  values(): IterableIterator<T>;
}

/** Pieces of a map: of a million keys each has some thousands, and is laid out anew within a millisecond. */
const PIECES = 256;

/**
 * Makes an empty map. A `Map` of a million keys holds everything up for a tenth of a second whenever it grows, because
 * all keys are laid out anew; this one consists of many that grow each on its own.
 */
export function openTextMap<T>(): TextMap<T> {
  const pieces: (Map<string, T> | undefined)[] = Array.from({ length: PIECES });
  return {
    get: (key) => pieces[pieceOf(key)]?.get(key),
    has: (key) => pieces[pieceOf(key)]?.has(key) === true,
    set: (key, value) => {
      const at = pieceOf(key);
      (pieces[at] ??= new Map<string, T>()).set(key, value);
    },
    delete: (key) => {
      pieces[pieceOf(key)]?.delete(key);
    },
    entries: function* () {
      for (const piece of pieces) if (piece !== undefined) yield* piece.entries();
    },
    values: function* () {
      for (const piece of pieces) if (piece !== undefined) yield* piece.values();
    },
  };
}

/** Paths differ at their ends but for the extension, other keys at their starts too. */
function pieceOf(key: string): number {
  const { length } = key;
  let mixed = length;
  // Beyond a short key's ends is NaN, which counts as 0 here.
  for (let at = 0; at < 4; at++) mixed = (mixed * 31 + (key.charCodeAt(at) | 0)) | 0;
  for (let at = length - 7; at < length - 3; at++) mixed = (mixed * 31 + (key.charCodeAt(at) | 0)) | 0;
  return (mixed ^ (mixed >>> 8) ^ (mixed >>> 16)) & (PIECES - 1);
}

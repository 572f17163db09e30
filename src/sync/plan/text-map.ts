/** A map by text that grows in small pieces. Iteration order is undefined. */
export type TextMap<T> = ReturnType<typeof openTextMap<T>>;

/** Pieces of a map. Of a million keys each piece holds some thousands, and is rehashed within a millisecond. */
const PIECES = 256;

/**
 * Makes an empty map. A `Map` of a million keys blocks for a tenth of a second whenever it grows, because it rehashes
 * all keys. This one consists of many pieces that each grow on their own.
 */
export function openTextMap<T>() {
  const pieces: (Map<string, T> | undefined)[] = Array.from({ length: PIECES });
  return {
    get: (key: string): T | undefined => pieces[pieceOf(key)]?.get(key),
    has: (key: string): boolean => pieces[pieceOf(key)]?.has(key) === true,
    set: (key: string, value: T): void => {
      const at = pieceOf(key);
      (pieces[at] ??= new Map<string, T>()).set(key, value);
    },
    delete: (key: string): void => {
      pieces[pieceOf(key)]?.delete(key);
    },
    entries: function* () {
      for (const piece of pieces) if (piece !== undefined) yield* piece.entries();
    },
  };
}

/** Paths differ at their ends, apart from the extension. Other keys also differ at their starts. */
function pieceOf(key: string): number {
  const { length } = key;
  let mixed = length;
  // Beyond a short key's ends is NaN, which counts as 0 here.
  for (let at = 0; at < 4; at++) mixed = (mixed * 31 + (key.charCodeAt(at) | 0)) | 0;
  for (let at = length - 7; at < length - 3; at++) mixed = (mixed * 31 + (key.charCodeAt(at) | 0)) | 0;
  return (mixed ^ (mixed >>> 8) ^ (mixed >>> 16)) & (PIECES - 1);
}

/** A set of whole numbers from 0, a bit each: a million rows take 128 KB, where their ids would take a hundred MB. */
export interface NumberSet {
  add(number: number): void;
  has(number: number): boolean;
}

/** Makes an empty set. It grows to the largest number in it. */
export function openNumberSet(): NumberSet {
  let bytes = new Uint8Array(1024);
  return {
    add: (number) => {
      const at = Math.floor(number / 8);
      if (at >= bytes.length) {
        const grown = new Uint8Array(Math.max(at + 1, 2 * bytes.length));
        grown.set(bytes);
        bytes = grown;
      }
      bytes[at] = (bytes[at] ?? 0) | (1 << (number % 8));
    },
    has: (number) => ((bytes[Math.floor(number / 8)] ?? 0) & (1 << (number % 8))) !== 0,
  };
}

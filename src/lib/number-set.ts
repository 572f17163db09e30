/** A bit set of whole numbers from 0. A million rows take 128 KB; a Set of their ids takes about 100 MB. */
export interface NumberSet {
  add(number: number): void;
  has(number: number): boolean;
}

/** Creates an empty set. It grows to its largest number. */
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

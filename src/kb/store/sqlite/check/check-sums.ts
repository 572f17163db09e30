/** Sums below this are exact integers. */
const SUM_MAX = 2 ** 52;

/** Adds an item to a sum. Equal items give equal sums in any order; different items almost never do. */
export function sumWith(sum: number, item: string): number {
  return (sum + mixed(item)) % SUM_MAX;
}

/** Hashes an item to 52 bits: two 26-bit halves of independent FNV-1a hashes. */
function mixed(item: string): number {
  let one = 0x811c9dc5;
  let two = 0x050c5d1f;
  for (let at = 0; at < item.length; at++) {
    const unit = item.charCodeAt(at);
    one = Math.imul(one ^ unit, 0x01000193);
    two = Math.imul(two ^ unit, 0x01000197);
  }
  return ((one >>> 6) * 2 ** 26 + (two >>> 6)) % SUM_MAX;
}

/** Bits for each term, and bits that a term sets: about two absent terms in a hundred pass. */
const BITS_PER_TERM = 10;
const PROBES = 6;

/**
 * Makes a Bloom filter of terms, given by their hashes. A mistyped word is compared with a thousand near words, nearly all of
 * which no chunk has: without the filter each would read a page of every run.
 */
export function makeTermFilter(hashes: Float64Array): Buffer {
  const filter = Buffer.alloc(Math.ceil((hashes.length * BITS_PER_TERM) / 8));
  for (const hash of hashes) {
    for (let probe = 0; probe < PROBES; probe++) {
      const bit = bitOf(hash, probe, filter.length * 8);
      filter[bit >>> 3] = (filter[bit >>> 3] ?? 0) | (1 << (bit & 7));
    }
  }
  return filter;
}

/** Whether a filter may have been made of this term. */
export function mayContain(filter: Buffer, hash: number): boolean {
  for (let probe = 0; probe < PROBES; probe++) {
    const bit = bitOf(hash, probe, filter.length * 8);
    if (((filter[bit >>> 3] ?? 0) & (1 << (bit & 7))) === 0) return false;
  }
  return filter.length > 0;
}

/** Kirsch and Mitzenmacher, 2006: two parts of one hash serve as many hash functions. */
function bitOf(hash: number, probe: number, bits: number): number {
  const one = hash % 2 ** 23;
  const two = Math.floor(hash / 2 ** 23);
  return (one * 257 + two + probe * (two * 127 + one + 1)) % bits;
}

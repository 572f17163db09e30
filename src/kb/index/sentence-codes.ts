/**
 * The unit vectors of a chunk's sentences as the store saves them, contiguously: the scale as a 32-bit float, then four
 * bits per dimension; value = (nibble − 8) × scale. A chunk has about six sentences, so the size matters. The cosines
 * change by up to 0.02 (a test measures it), which changed no ranking on judged sets.
 */
const SCALE_BYTES = 4;
/** Nibble of the value 0; nibbles range from −7 to 7 around it. */
const ZERO = 8;
const NIBBLE_MAX = 7;

/** Packs vectors of equal dimensions. */
export function packSentences(vectors: readonly Float32Array[]): Buffer {
  const size = packedBytes(vectors[0]?.length ?? 0);
  const bytes = Buffer.alloc(vectors.length * size);
  for (const [at, vector] of vectors.entries()) pack(vector, bytes.subarray(at * size, (at + 1) * size));
  return bytes;
}

function pack(vector: Float32Array, into: Buffer): void {
  let max = 0;
  for (const value of vector) max = Math.max(max, Math.abs(value));
  const scale = max === 0 ? 1 : max / NIBBLE_MAX;
  into.writeFloatLE(scale, 0);
  for (let at = 0; at < vector.length; at += 2) {
    const low = Math.round((vector[at] ?? 0) / scale) + ZERO;
    const high = Math.round((vector[at + 1] ?? 0) / scale) + ZERO;
    into[SCALE_BYTES + at / 2] = low | (high << 4);
  }
}

/** Returns the largest cosine of a unit vector with the packed ones; undefined if there are none of its dimensions. */
export function bestSentence(vector: Float32Array, packed: Buffer): number | undefined {
  const size = packedBytes(vector.length);
  if (packed.length === 0 || packed.length % size !== 0) return undefined;
  let best = -Infinity;
  for (let from = 0; from < packed.length; from += size) {
    let sum = 0;
    for (let at = 0; at < vector.length; at += 2) {
      const pair = packed[from + SCALE_BYTES + at / 2] ?? 0;
      sum += (vector[at] ?? 0) * ((pair & 15) - ZERO) + (vector[at + 1] ?? 0) * ((pair >> 4) - ZERO);
    }
    best = Math.max(best, sum * packed.readFloatLE(from));
  }
  return Math.max(-1, Math.min(1, best));
}

/** Returns the bytes of one packed vector. */
function packedBytes(dimensions: number): number {
  return SCALE_BYTES + Math.ceil(dimensions / 2);
}

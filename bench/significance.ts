/** Paired significance over queries. */

/** Random assignments of signs: the p of a clear difference has a resolution of 1/10,001. */
const ROUNDS = 10_000;

/**
 * Returns the two-sided p of the mean of paired differences by Fisher's randomisation test: the share of random signs whose mean is at
 * least as far from 0 (Smucker et al., CIKM 2007). Deterministic.
 */
export function randomisationP(differences: readonly number[]): number {
  const values = differences.filter((difference) => difference !== 0);
  const observed = Math.abs(values.reduce((sum, value) => sum + value, 0));
  if (values.length === 0) return 1;
  const next = randomBits();
  let asFar = 0;
  for (let round = 0; round < ROUNDS; round++) {
    let sum = 0;
    for (const value of values) sum += next() ? value : -value;
    // The same sum in another order may differ in its last digits.
    if (Math.abs(sum) >= observed - 1e-12) asFar += 1;
  }
  return (asFar + 1) / (ROUNDS + 1);
}

/** Marsaglia's xorshift with a fixed seed. */
function randomBits(): () => boolean {
  let state = 2_463_534_242;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state & 0x10000) !== 0;
  };
}

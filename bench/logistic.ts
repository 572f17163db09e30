/** Logistic regression by Newton's method; small enough to be read. */

export interface Sample {
  readonly features: readonly number[];
  readonly isTrue: boolean;
  readonly weight: number;
}

/** Pulls the coefficients towards 0, by so much of the samples' weight: without it a set without errors has no answer. */
const RIDGE = 1e-3;
const STEPS = 40;

/** The intercept, then a coefficient for each feature. */
export function fitLogistic(samples: readonly Sample[]): number[] {
  const size = (samples[0]?.features.length ?? 0) + 1;
  const all = samples.reduce((sum, { weight }) => sum + weight, 0);
  let found = Array.from({ length: size }, () => 0);
  for (let step = 0; step < STEPS; step++) {
    const gradient = found.map((value, at) => (at === 0 ? 0 : -RIDGE * all * value));
    const rows = found.map((_, at) =>
      found.map((_each, other) => (at === other && at > 0 ? RIDGE * all : 0)),
    );
    for (const { features, isTrue, weight } of samples) {
      const values = [1, ...features];
      const logit = values.reduce((sum, value, at) => sum + value * (found[at] ?? 0), 0);
      const probability = 1 / (1 + Math.exp(-logit));
      for (const [at, value] of values.entries()) {
        gradient[at] = (gradient[at] ?? 0) + weight * ((isTrue ? 1 : 0) - probability) * value;
        const row = rows[at] ?? [];
        for (const [other, next] of values.entries()) {
          row[other] = (row[other] ?? 0) + weight * probability * (1 - probability) * value * next;
        }
      }
    }
    const change = solve(rows, gradient);
    found = found.map((value, at) => value + (change[at] ?? 0));
  }
  return found;
}

/** Gaussian elimination; the matrix is positive definite. */
function solve(matrix: readonly (readonly number[])[], right: readonly number[]): number[] {
  const rows = matrix.map((row, at) => [...row, right[at] ?? 0]);
  for (const [at, pivot] of rows.entries()) {
    for (const below of rows.slice(at + 1)) {
      const factor = (below[at] ?? 0) / (pivot[at] ?? 1);
      for (let place = at; place < below.length; place++)
        below[place] = (below[place] ?? 0) - factor * (pivot[place] ?? 0);
    }
  }
  const result = rows.map(() => 0);
  for (let at = rows.length - 1; at >= 0; at--) {
    const row = rows[at] ?? [];
    let rest = row[rows.length] ?? 0;
    for (let place = at + 1; place < rows.length; place++) rest -= (row[place] ?? 0) * (result[place] ?? 0);
    result[at] = rest / (row[at] ?? 1);
  }
  return result;
}

import { describe, expect, it } from "vitest";
import { bestSentence, packSentences } from "../../../src/kb/index/sentence-codes.ts";
import { dot } from "../store/store-fixture.ts";

/** Unit vectors of normal values from a seeded generator, equal in every run. */
function vectors(count: number, dimensions: number): Float32Array[] {
  let state = 12345;
  const next = (): number => (state = (state * 1103515245 + 12345) % 2 ** 31) / 2 ** 31;
  const normal = (): number => Math.sqrt(-2 * Math.log(next() + 1e-9)) * Math.cos(2 * Math.PI * next());
  return Array.from({ length: count }, () => {
    const values = Array.from({ length: dimensions }, normal);
    const length = Math.hypot(...values);
    return Float32Array.from(values, (value) => value / length);
  });
}

describe("packed sentence vectors", () => {
  it.each([384, 64, 5, 1])("bestSentence approximates the largest cosine in %i dimensions", (dimensions) => {
    const sentences = vectors(12, dimensions);
    for (const query of [...vectors(20, dimensions), ...sentences]) {
      const best = Math.max(...sentences.map((sentence) => dot(query, sentence)));
      const error = Math.abs((bestSentence(query, packSentences(sentences)) ?? 2) - best);
      // The error falls with the root of the dimensions; 384 are those of the local model.
      expect(error).toBeLessThan(dimensions === 384 ? 0.02 : 0.1);
    }
  });

  it("packSentences takes four bits per dimension", () => {
    expect(packSentences(vectors(6, 384))).toHaveLength(6 * (4 + 192));
  });

  it("bestSentence returns undefined without vectors of the same dimensions", () => {
    const [query = new Float32Array()] = vectors(1, 384);
    expect(bestSentence(query, packSentences([]))).toBeUndefined();
    expect(bestSentence(query, packSentences(vectors(1, 64)))).toBeUndefined();
  });

  it("bestSentence stays within [-1, 1], and is 0 for a zero vector", () => {
    const [query = new Float32Array()] = vectors(1, 384);
    expect(bestSentence(query, packSentences([query]))).toBeLessThanOrEqual(1);
    expect(bestSentence(query, packSentences([new Float32Array(384)]))).toBe(0);
  });
});

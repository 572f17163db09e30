import * as fc from "fast-check";
import { expect, it } from "vitest";
import { runsToMerge } from "../../../../src/kb/index/words/merge-plan.ts";

/** Adds a run of each size and makes all merges that are due. Returns the most runs at a time, and the chunks rewritten. */
function grow(sizes: readonly number[]): { most: number; rewritten: number; chunks: number } {
  let most = 0;
  let rewritten = 0;
  let chunks = 0;
  const runs: number[] = [];
  for (const size of sizes) {
    runs.push(size);
    chunks += size;
    for (let count = runsToMerge(runs); count > 0; count = runsToMerge(runs)) {
      const merged = runs.splice(-count).reduce((sum, of) => sum + of, 0);
      runs.push(merged);
      rewritten += merged;
    }
    most = Math.max(most, runs.length);
  }
  return { most, rewritten, chunks };
}

it("rewrites each chunk once for each factor of eight while runs of one size come in", () => {
  const { most, rewritten, chunks } = grow(Array.from({ length: 4096 }, () => 512));
  expect(rewritten / chunks).toBeLessThanOrEqual(4);
  expect(most).toBeLessThanOrEqual(7 * 4);
});

it("a merge plan has few runs and rewrites little in whatever sizes runs come in", () => {
  const size = fc.oneof(fc.integer({ min: 1, max: 300 }), fc.constantFrom(128, 4096, 16_384, 40_000));
  fc.assert(
    fc.property(fc.array(size, { maxLength: 600 }), fc.nat(4), (sizes, repeats) => {
      const all = Array.from({ length: repeats + 1 }, () => sizes).flat();
      const { most, rewritten, chunks } = grow(all);
      const levels = 2 + Math.log2(Math.max(512, chunks) / 512) / 3;
      expect(most).toBeLessThan(8 * levels);
      expect(rewritten).toBeLessThanOrEqual(chunks * 3 * levels);
    }),
  );
});

import { array, assert, double, nat, property, record, uniqueArray } from "fast-check";
import { describe, expect, it } from "vitest";
import { fuse, FUSED_DEPTH } from "../../../src/kb/search/fuse.ts";

const words = (scores: readonly [row: number, bm25: number][]) =>
  scores.map(([row, bm25]) => ({ row, bm25, coverage: 0.5 }));
const vectors = (scores: readonly [row: number, cosine: number][]) =>
  scores.map(([row, cosine]) => ({ row, cosine }));

describe("fuse", () => {
  it("puts a chunk that both find before one that either finds", () => {
    const fused = fuse(
      words([
        [1, 8],
        [2, 6],
      ]),
      vectors([
        [3, 0.9],
        [2, 0.8],
      ]),
    );
    expect(fused.map(({ row }) => row)).toEqual([2, 1, 3]);
    expect(fused[1]?.mix).toBeCloseTo(0.5, 10);
  });

  it("gives 1 to the best of both lists", () => {
    expect(fuse(words([[1, 8]]), vectors([[1, 0.9]]))).toEqual([{ row: 1, mix: 1 }]);
  });

  it("gives the last of a full list nothing, of a short list its share", () => {
    const full = Array.from({ length: FUSED_DEPTH }, (_, at): [number, number] => [at, FUSED_DEPTH - at]);
    expect(fuse(words(full), []).at(-1)?.mix).toBe(0);
    expect(
      fuse(
        words([
          [1, 4],
          [2, 1],
        ]),
        [],
      ),
    ).toEqual([
      { row: 1, mix: 0.5 },
      { row: 2, mix: 0.125 },
    ]);
  });

  it("is empty for nothing", () => {
    expect(fuse([], [])).toEqual([]);
  });

  it("names each chunk once, in falling order, within [0, 1]", () => {
    const score = double({ min: 0.01, max: 1, noNaN: true });
    const hits = uniqueArray(record({ row: nat({ max: 60 }), score }), {
      selector: ({ row }) => row,
      maxLength: 40,
    }).map((list) => list.toSorted((a, b) => b.score - a.score));
    assert(
      property(hits, hits, (lexical, nearest) => {
        const fused = fuse(
          words(lexical.map(({ row, score: bm25 }) => [row, bm25])),
          vectors(nearest.map(({ row, score: cosine }) => [row, cosine])),
        );
        expect(new Set(fused.map(({ row }) => row))).toEqual(
          new Set([...lexical, ...nearest].map(({ row }) => row)),
        );
        expect(fused).toHaveLength(new Set(fused.map(({ row }) => row)).size);
        for (const [at, { mix }] of fused.entries()) {
          expect(mix).toBeGreaterThanOrEqual(0);
          expect(mix).toBeLessThanOrEqual(1);
          expect(mix).toBeLessThanOrEqual(fused[at - 1]?.mix ?? 1);
        }
      }),
    );
    assert(
      property(
        array(nat()),
        (rows) => fuse([], vectors(rows.slice(0, 1).map((row) => [row, 0.5]))).length < 2,
      ),
    );
  });
});

import { array, assert, double, nat, property, record, uniqueArray } from "fast-check";
import { describe, expect, it } from "vitest";
import { fuse, FUSED_DEPTH, lexicalShare } from "../../../src/kb/search/fuse.ts";

const words = (scores: readonly [ref: number, bm25: number][]) =>
  scores.map(([ref, bm25]) => ({ ref, bm25, match: { matched: 1, strength: 0.5 } }));
const vectors = (scores: readonly [ref: number, cosine: number][]) =>
  scores.map(([ref, cosine]) => ({ ref, cosine }));

describe("fuse", () => {
  it("fuse ranks a chunk in both lists before a chunk in one", () => {
    const fused = fuse(
      words([
        [1, 8],
        [2, 6],
      ]),
      vectors([
        [3, 0.9],
        [2, 0.8],
      ]),
      vectors([[1, 0]]),
    );
    expect(fused.map(({ ref }) => ref)).toEqual([2, 1, 3]);
    expect(fused[1]?.mix).toBeCloseTo(0.5, 10);
  });

  it("fuse gives 1 to the best chunk of both lists", () => {
    expect(fuse(words([[1, 8]]), vectors([[1, 0.9]]))).toEqual([
      { ref: 1, mix: 1, words: 1, wordShare: 0.5, cosine: 0.9 },
    ]);
  });

  it("fuse divides BM25 by the best BM25, in a full list too", () => {
    const full = Array.from({ length: FUSED_DEPTH }, (_, at): [number, number] => [at, FUSED_DEPTH - at]);
    expect(fuse(words(full), []).at(-1)?.mix).toBeCloseTo(1 / FUSED_DEPTH, 10);
    expect(
      fuse(
        words([
          [1, 4],
          [2, 1],
        ]),
        [],
      ),
    ).toEqual([
      { ref: 1, mix: 1, words: 1, wordShare: 1, cosine: undefined },
      { ref: 2, mix: 0.25, words: 0.25, wordShare: 1, cosine: undefined },
    ]);
  });

  it("fuse stretches the cosines of a full list from the smallest known cosine, of a short list from 0", () => {
    const full = Array.from({ length: FUSED_DEPTH }, (_, at): [number, number] => [at, 0.9 - at / 1000]);
    const found = fuse(words([[500, 7]]), vectors(full), vectors([[500, 0.4]]));
    const mixOf = (ref: number): number => found.find((each) => each.ref === ref)?.mix ?? -1;
    expect(mixOf(500)).toBeCloseTo(0.5, 10);
    expect(mixOf(0)).toBeCloseTo(0.5, 10);
    expect(mixOf(99)).toBeCloseTo((0.5 * (0.801 - 0.4)) / 0.5, 10);
    expect(
      fuse(
        [],
        vectors([
          [1, 0.8],
          [2, 0.4],
        ]),
      ).map(({ mix }) => mix),
    ).toEqual([1, 0.5]);
  });

  it("fuse counts the cosine of a chunk that only the lexical search found", () => {
    const far = fuse(
      words([
        [1, 8],
        [2, 8],
      ]),
      vectors([[3, 0.9]]),
      vectors([
        [1, 0.2],
        [2, 0.8],
      ]),
    );
    expect(far.map(({ ref }) => ref)).toEqual([2, 1, 3]);
  });

  it("fuse ranks a chunk without a vector by its words alone", () => {
    const fused = fuse(
      words([
        [1, 8],
        [2, 1],
      ]),
      vectors([
        [2, 0.3],
        [3, 0.2],
      ]),
    );
    expect(fused.map(({ ref }) => ref)).toEqual([1, 2, 3]);
    expect(fused[0]).toEqual({ ref: 1, mix: 1, words: 1, wordShare: 1, cosine: undefined });
  });

  it("fuse gives equal cosines of a full list 1, and orders ties by ref", () => {
    const equal = vectors([
      [3, 0.5],
      [1, 0.5],
      [2, 0.5],
    ]);
    expect(fuse([], equal, [], equal.length).map(({ ref, mix }) => [ref, mix])).toEqual([
      [1, 1],
      [2, 1],
      [3, 1],
    ]);
  });

  it("fuse returns an empty list for empty lists", () => {
    expect(fuse([], [])).toEqual([]);
  });

  it("fuse returns each chunk once, by descending mix within [0, 1]", () => {
    const score = double({ min: 0.01, max: 1, noNaN: true });
    const hits = uniqueArray(record({ ref: nat({ max: 60 }), score }), {
      selector: ({ ref }) => ref,
      maxLength: 40,
    }).map((list) => list.toSorted((a, b) => b.score - a.score));
    assert(
      property(hits, hits, (lexical, nearest) => {
        const fused = fuse(
          words(lexical.map(({ ref, score: bm25 }) => [ref, bm25])),
          vectors(nearest.map(({ ref, score: cosine }) => [ref, cosine])),
        );
        expect(new Set(fused.map(({ ref }) => ref))).toEqual(
          new Set([...lexical, ...nearest].map(({ ref }) => ref)),
        );
        expect(fused).toHaveLength(new Set(fused.map(({ ref }) => ref)).size);
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
        (refs) => fuse([], vectors(refs.slice(0, 1).map((ref) => [ref, 0.5]))).length < 2,
      ),
    );
  });
});

describe("lexicalShare", () => {
  it("words decide less if the best chunk has few words of the query, and half in between", () => {
    const shareOf = (matched: number): number => lexicalShare({ matched, strength: 0 }, 10);
    expect(shareOf(7)).toBeCloseTo(0.5, 10);
    expect(shareOf(2)).toBeCloseTo(0.4, 10);
    expect(shareOf(10)).toBeCloseTo(0.56, 10);
    expect(lexicalShare(undefined, 10)).toBe(0.5);
    // Function words alone weigh nothing.
    expect(lexicalShare({ matched: 0, strength: 0 }, 0)).toBe(0.5);
  });

  it("fuse gives words the weight that it is given", () => {
    const fused = fuse(words([[1, 8]]), vectors([[2, 0.9]]), vectors([[1, 0]]), FUSED_DEPTH, 0.4);
    expect(fused.map(({ ref, mix }) => [ref, mix])).toEqual([
      [2, 0.6],
      [1, 0.4],
    ]);
  });
});

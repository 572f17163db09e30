import { describe, expect, it } from "vitest";
import { mixDocuments } from "../../../src/kb/search/documents.ts";

const hits = [
  { ref: 1, mix: 0.9, words: 1, wordShare: 0.5 },
  { ref: 2, mix: 0.8, words: 0.8, wordShare: 0.5 },
  { ref: 3, mix: 0.7, words: 0.4, wordShare: 0.5 },
  { ref: 4, mix: 0.3, words: 0, wordShare: 0.5 },
];
const mixes = (list: readonly { readonly ref: number; readonly mix: number }[]): number[][] =>
  list.map(({ ref, mix }) => [ref, Number(mix.toFixed(4))]);

describe("mixDocuments", () => {
  it("mixDocuments lifts the chunk of the better document by half of its lexical gain", () => {
    const matches = [
      { ref: 1, bm25: 2, chunks: 2 },
      { ref: 3, bm25: 8, chunks: 2 },
    ];
    // The best document scales to the best lexical score of these chunks.
    expect(mixes(mixDocuments(hits, matches))).toEqual([
      [3, 0.85],
      [2, 0.8],
      [1, 0.7125],
      [4, 0.3],
    ]);
  });

  it("mixDocuments gives longer documents less weight", () => {
    const lifted = (chunks: number): number =>
      mixDocuments(hits, [
        { ref: 2, bm25: 4, chunks: 1 },
        { ref: 3, bm25: 4, chunks },
      ]).find(({ ref }) => ref === 3)?.mix ?? 0;
    expect(lifted(1)).toBeCloseTo(0.7 + 0.5 * 0.2, 10);
    expect(lifted(4)).toBeCloseTo(0.7 + 0.5 * 0.2, 10);
    expect(lifted(8)).toBeCloseTo(0.7 + 0.25 * 0.2, 10);
  });

  it("mixDocuments has its full weight for hits ranked by words alone", () => {
    const alone = hits.map((hit) => ({ ...hit, wordShare: 1 }));
    const lifted = mixDocuments(alone, [
      { ref: 1, bm25: 4, chunks: 1 },
      { ref: 3, bm25: 4, chunks: 1 },
    ]);
    expect(lifted.find(({ ref }) => ref === 3)?.mix).toBeCloseTo(0.7 + 0.5 * 0.6, 10);
  });

  it("mixDocuments moves no hit without matches, or if no document contains a query word", () => {
    expect(mixDocuments(hits, [])).toEqual(hits);
    expect(mixDocuments(hits, [{ ref: 4, bm25: 0, chunks: 1 }])).toEqual(hits);
  });

  it("mixDocuments lifts a chunk without a query word by its document's score", () => {
    const matches = [
      { ref: 2, bm25: 6, chunks: 3 },
      { ref: 4, bm25: 6, chunks: 3 },
    ];
    expect(mixDocuments(hits, matches).find(({ ref }) => ref === 4)?.mix).toBeCloseTo(0.3 + 0.5 * 0.4, 10);
  });
});

import { array, assert, double, integer, property, record } from "fast-check";
import { describe, expect, it } from "vitest";
import { idf, IDF_MIN, K1, saturation } from "../../../src/kb/lexical/bm25.ts";
import { documentScores } from "../../../src/kb/lexical/documents.ts";

describe("documentScores", () => {
  const rare = { factor: 1, share: 0.001 };
  const common = { factor: 1, share: 0.3 };

  it("documentScores ranks a document with all query words before one that repeats one of them", () => {
    const [all = 0, often = 0] = documentScores(
      [
        { counts: [1, 1], words: 100, chunks: 2 },
        { counts: [4, 0], words: 100, chunks: 2 },
      ],
      [rare, rare],
      10_000,
    );
    expect(all).toBeGreaterThan(often);
  });

  it("documentScores treats a word as more common if documents have more chunks", () => {
    const worth = (chunks: number): number =>
      documentScores([{ counts: [1], words: 100, chunks }], [common], 10_000)[0] ?? 0;
    expect(worth(1)).toBeGreaterThan(worth(1.5));
    // About two thirds of documents of three chunks would contain it: such a word is no evidence.
    expect(worth(3)).toBeCloseTo(IDF_MIN, 10);
  });

  it("documentScores normalises by the mean length of the documents", () => {
    const [short = 0, long = 0] = documentScores(
      [
        { counts: [2], words: 50, chunks: 1 },
        { counts: [2], words: 500, chunks: 1 },
      ],
      [rare],
      10_000,
    );
    expect(short).toBeGreaterThan(long);
  });

  it("documentScores is BM25 with the documents' own means", () => {
    const [first = 0, second = 0] = documentScores(
      [
        { counts: [1, 0], words: 100, chunks: 1 },
        { counts: [0, 2], words: 300, chunks: 3 },
      ],
      [
        { factor: 2, share: 0.001 },
        { factor: 1, share: 0.01 },
      ],
      10_000,
    );
    const all = 10_000 / 2;
    const weight = (share: number): number => idf((1 - (1 - share) ** 2) * all, all);
    expect(first).toBeCloseTo(2 * weight(0.001) * saturation(1, 100, 200), 10);
    expect(second).toBeCloseTo(weight(0.01) * saturation(2, 300, 200), 10);
  });

  it("documentScores returns a score between 0 and the limit of saturation for each document", () => {
    const count = integer({ min: 0, max: 1000 });
    const one = record({
      counts: array(count, { minLength: 3, maxLength: 3 }),
      words: integer({ min: 1, max: 100_000 }),
      chunks: integer({ min: 1, max: 8 }),
    });
    const term = record({
      factor: double({ min: 1, max: 10, noNaN: true }),
      share: double({ min: 0, max: 1, noNaN: true }),
    });
    assert(
      property(
        array(one, { maxLength: 20 }),
        array(term, { minLength: 3, maxLength: 3 }),
        integer({ min: 1, max: 1_000_000 }),
        (documents, terms, all) => {
          const scores = documentScores(documents, terms, all);
          expect(scores).toHaveLength(documents.length);
          const most = terms.reduce((sum, { factor }) => sum + factor, 0) * (K1 + 1) * Math.log(4e6);
          for (const score of scores) {
            expect(score).toBeGreaterThanOrEqual(0);
            expect(score).toBeLessThanOrEqual(most);
          }
        },
      ),
    );
    expect(documentScores([], [rare], 100)).toEqual([]);
  });
});

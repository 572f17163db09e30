import { array, assert, double, property, record } from "fast-check";
import { describe, expect, it } from "vitest";
import {
  fallingScores,
  fusedEvidence,
  lexicalEvidence,
  probabilityOf,
  scoreOf,
} from "../../../src/kb/search/score.ts";
import type { FusedWitness } from "../../../src/kb/search/score.ts";

const share = double({ min: 0, max: 1, noNaN: true });

describe("scoreOf", () => {
  it("lies in (0, 1) and grows with the evidence", () => {
    assert(
      property(share, share, (a, b) => {
        const [less, more] = a < b ? [a, b] : [b, a];
        expect(scoreOf(less)).toBeGreaterThan(0);
        expect(scoreOf(more)).toBeLessThan(1);
        expect(scoreOf(less)).toBeLessThanOrEqual(scoreOf(more));
      }),
    );
  });

  it("calls next to nothing what has next to no evidence, and half of it under a half", () => {
    expect(scoreOf(0)).toBeLessThan(0.01);
    expect(scoreOf(0.5)).toBeLessThan(0.5);
    expect(scoreOf(0.8)).toBeGreaterThan(0.75);
    expect(scoreOf(1)).toBeGreaterThan(0.95);
  });

  it("stands for a probability, which is lower, and 0.18 at a half", () => {
    expect(probabilityOf(0.5)).toBeCloseTo(0.18, 10);
    expect(probabilityOf(0)).toBe(0);
    expect(probabilityOf(1)).toBe(1);
    assert(
      property(share, (score) => {
        expect(probabilityOf(score)).toBeLessThanOrEqual(score + 1e-12);
      }),
    );
    // As it was fitted.
    expect(probabilityOf(scoreOf(0.6))).toBeCloseTo(1 / (1 + Math.exp(7 - 10.4 * 0.6)), 10);
  });
});

describe("evidence", () => {
  it("by words is the mean of both shares, none without a hit", () => {
    expect(lexicalEvidence({ bm25: 6, coverage: 1 }, 12)).toBe(0.75);
    expect(lexicalEvidence(undefined, 12)).toBe(0);
    expect(lexicalEvidence({ bm25: 0, coverage: 0 }, 0)).toBe(0);
  });

  it("of every word once in a chunk of mean length is enough for a score over a half", () => {
    expect(scoreOf(lexicalEvidence({ bm25: 1, coverage: 1 }, 2.2))).toBeGreaterThan(0.5);
  });

  it("by both stays in [0, 1] and grows with each part", () => {
    const cosine = double({ min: -1, max: 1, noNaN: true });
    assert(
      property(share, share, cosine, cosine, (mix, lexicalBest, cosineBest, own) => {
        const witness = { mix, lexicalBest, cosineBest, cosine: own };
        const evidence = fusedEvidence(witness);
        expect(evidence).toBeGreaterThanOrEqual(0);
        expect(evidence).toBeLessThanOrEqual(1);
        expect(fusedEvidence({ ...witness, mix: 1 })).toBeGreaterThanOrEqual(evidence);
        expect(fusedEvidence({ ...witness, lexicalBest: 1, cosineBest: 1 })).toBeGreaterThanOrEqual(evidence);
        expect(fusedEvidence({ ...witness, cosine: 1 })).toBeGreaterThanOrEqual(evidence);
        expect(fusedEvidence({ ...witness, cosine: undefined })).toBeLessThanOrEqual(evidence);
      }),
    );
  });

  const SCORES: readonly [name: string, witness: FusedWitness, from: number, to: number][] = [
    ["best by words and meaning", { mix: 1, cosine: 0.8, lexicalBest: 0.9, cosineBest: 0.8 }, 0.85, 1],
    ["middling by both", { mix: 1, cosine: 0.5, lexicalBest: 0.5, cosineBest: 0.5 }, 0.1, 0.4],
    ["the same in other words", { mix: 1, cosine: 0.85, lexicalBest: 0, cosineBest: 0.85 }, 0.5, 0.9],
    ["far from everything", { mix: 1, cosine: 0.3, lexicalBest: 0, cosineBest: 0.3 }, 0, 0.02],
    [
      "near, though few words put another first",
      { mix: 0.5, cosine: 0.9, lexicalBest: 0.1, cosineBest: 0.9 },
      0.5,
      0.9,
    ],
    ["without a vector", { mix: 0.5, cosine: undefined, lexicalBest: 0.9, cosineBest: 0.6 }, 0, 0.1],
  ];
  it.each(SCORES)("by both, %s", (_name, witness, from, to) => {
    const score = scoreOf(fusedEvidence(witness));
    expect(score).toBeGreaterThan(from);
    expect(score).toBeLessThan(to);
  });
});

describe("fallingScores", () => {
  it("falls with the rank, is equal for equal ranks and never above the evidence's own score", () => {
    const ranking = array(record({ rank: share, evidence: share }), { maxLength: 20 }).map((list) =>
      list.toSorted((a, b) => b.rank - a.rank),
    );
    assert(
      property(ranking, (list) => {
        const scores = fallingScores(list);
        for (const [at, { rank, evidence }] of list.entries()) {
          const [score = 0, next = 0] = scores.slice(at);
          expect(score).toBeLessThanOrEqual(scoreOf(evidence));
          const isLast = at + 1 === list.length;
          expect(isLast || (list[at + 1]?.rank === rank ? next <= score : next < score)).toBe(true);
        }
      }),
    );
  });

  it("is the score of the evidence where that falls by itself", () => {
    expect(
      fallingScores([
        { rank: 2, evidence: 0.8 },
        { rank: 1, evidence: 0.3 },
      ]),
    ).toEqual([scoreOf(0.8), scoreOf(0.3)]);
  });
});

import { array, assert, double, integer, option, property, record } from "fast-check";
import { describe, expect, it } from "vitest";
import { matchOf, queryWords } from "../../../src/kb/lexical/word-match.ts";
import {
  COSINE_NOISE,
  judgedScore,
  reportedScores,
  scoreOf,
  shiftMaxOf,
} from "../../../src/kb/search/score.ts";

const share = double({ min: 0, max: 1, noNaN: true });
const cosine = double({ min: -1, max: 1, noNaN: true });
/** Evidence of a chunk that contains part of a query. */
const evidence = record({
  held: share,
  often: share,
  total: double({ min: 0.1, max: 10, noNaN: true }),
  cosine: option(cosine, { nil: undefined }),
}).map(({ held, often, total, cosine: own }) => {
  const matched = held * total;
  return { match: { matched, strength: matched * often }, total, cosine: own };
});

describe("scoreOf", () => {
  it("the score lies in [0, 1) and grows with each part of the evidence", () => {
    assert(
      property(evidence, share, cosine, (less, more, near) => {
        const score = scoreOf(less);
        expect(score).toBeGreaterThanOrEqual(0);
        expect(score).toBeLessThan(1);
        const { matched, strength } = less.match;
        const rest = more * (less.total - matched);
        const held = { matched: matched + rest, strength: strength + rest / 2 };
        expect(scoreOf({ ...less, match: held })).toBeGreaterThanOrEqual(score);
        expect(
          scoreOf({ ...less, match: { matched, strength: strength + more * (matched - strength) } }),
        ).toBeGreaterThanOrEqual(score);
        const nearer = less.cosine === undefined ? undefined : Math.max(less.cosine, near);
        expect(scoreOf({ ...less, cosine: nearer })).toBeGreaterThanOrEqual(score);
      }),
    );
  });

  it("the score is 0 if only function words match and the cosine is noise", () => {
    const { weights, total, terms } = queryWords("what is it that they are");
    expect(total).toBe(0);
    const match = matchOf(
      weights,
      terms.map(() => 3),
      100,
    );
    expect(match).toEqual({ matched: 0, strength: 0 });
    expect(scoreOf({ match, total, cosine: undefined })).toBe(0);
    expect(scoreOf({ match, total, cosine: COSINE_NOISE })).toBe(0);
    expect(scoreOf({ match, total: 4, cosine: COSINE_NOISE })).toBe(0);
  });

  it("the score is at most 0.3 for a query of function words, at any cosine", () => {
    assert(
      property(cosine, (near) => {
        expect(scoreOf({ match: { matched: 0, strength: 0 }, total: 0, cosine: near })).toBeLessThanOrEqual(
          0.3,
        );
      }),
    );
  });

  const QUERY = "replace the impeller of the bilge pump";
  const matchIn = (query: string, counts: (term: string) => number, words = 120) => {
    const { terms, weights, total } = queryWords(query);
    return { match: matchOf(weights, terms.map(counts), words), total };
  };
  const all = matchIn(QUERY, () => 1);
  const one = matchIn(QUERY, (term) => (term === "pump" ? 1 : 0));
  const none = matchIn(QUERY, () => 0);
  const SCORES: readonly [name: string, score: number, from: number, to: number][] = [
    ["every word, without a vector", scoreOf({ ...all, cosine: undefined }), 0.5, 1],
    ["every word, and near", scoreOf({ ...all, cosine: 0.7 }), 0.7, 1],
    ["near in other words", scoreOf({ ...none, cosine: 0.75 }), 0.4, 1],
    ["one word of four", scoreOf({ ...one, cosine: undefined }), 0.01, 0.3],
    ["one word of four, and not near", scoreOf({ ...one, cosine: 0.25 }), 0.01, 0.3],
    ["a single common word", scoreOf({ ...matchIn("get time", () => 2), cosine: undefined }), 0, 0.4],
  ];
  it.each(SCORES)("the score lies in the expected range: %s", (_name, score, from, to) => {
    expect(score).toBeGreaterThan(from);
    expect(score).toBeLessThan(to);
  });
});

describe("judgedScore", () => {
  it.each<[name: string, own: number, judgement: number, total: number, score: number]>([
    ["a judgement has three quarters of the weight", 0.4, 0.8, 2, 0.7],
    ["a judgement of 0 leaves a quarter of the own score", 0.4, 0, 2, 0.1],
    ["a judgement of a query of function words counts at most 0.3", 0.2, 0.8, 0, 0.23],
    ["a judgement of 0 adds nothing for a query of function words", 0.2, 0, 0, 0.05],
  ])("%s", (_name, own, judgement, total, score) => {
    expect(judgedScore(own, judgement, total)).toBeCloseTo(score, 12);
  });
});

describe("reportedScores", () => {
  const ranking = array(record({ mix: share, score: double({ min: 0.001, max: 1, noNaN: true }) }), {
    maxLength: 20,
  }).map((list) => list.toSorted((a, b) => b.mix - a.mix));

  const MANY = 1_000_000;

  it("the ranking shifts a score by less than 0.1, and not at all in a small collection", () => {
    assert(
      property(ranking, (list) => {
        const large = reportedScores(list, shiftMaxOf(MANY));
        const small = reportedScores(list, shiftMaxOf(30));
        for (const [at, { score }] of list.entries()) {
          expect(small[at]).toBeCloseTo(score, 7);
          expect(Math.abs((large[at] ?? 0) - (small[at] ?? 0))).toBeLessThan(0.1);
        }
      }),
    );
  });

  it("the ranking shifts scores further in a larger collection", () => {
    assert(
      property(
        ranking,
        integer({ min: 0, max: 5000 }),
        integer({ min: 0, max: 5000 }),
        (list, one, other) => {
          const shifts = (chunks: number): number[] =>
            reportedScores(list, shiftMaxOf(chunks)).map((reported, at) =>
              Math.abs(reported - (list[at]?.score ?? 0)),
            );
          const larger = shifts(Math.max(one, other));
          for (const [at, smaller] of shifts(Math.min(one, other)).entries())
            expect(smaller).toBeLessThanOrEqual((larger[at] ?? 0) + 1e-6);
        },
      ),
    );
  });

  it("scores fall with the rank if no own score rises by more than two shifts", () => {
    assert(
      property(ranking, (list) => {
        const near = list.map(({ mix, score }) => ({ mix, score: 0.4 + score * 0.18 }));
        const scores = reportedScores(near, shiftMaxOf(MANY));
        for (const [at, { mix }] of near.slice(0, -1).entries()) {
          const [score = 0, next = 1] = scores.slice(at);
          expect(near[at + 1]?.mix === mix ? next <= score : next < score).toBe(true);
        }
      }),
    );
  });

  it("a hit with far more evidence overtakes an earlier one", () => {
    const list = [
      { mix: 2, score: 0.3 },
      { mix: 1, score: 0.8 },
    ];
    expect(reportedScores(list, shiftMaxOf(MANY)).map((score) => score.toFixed(3))).toEqual([
      "0.395",
      "0.705",
    ]);
  });

  it("own scores that already fall with the rank stay unchanged", () => {
    const list = [
      { mix: 2, score: 0.8 },
      { mix: 1, score: 0.3 },
    ];
    expect(reportedScores(list, shiftMaxOf(MANY))[0]).toBe(0.8);
    expect(reportedScores(list, shiftMaxOf(MANY))[1]).toBeCloseTo(0.3, 7);
  });
});

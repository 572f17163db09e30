import { array, assert, double, option, property, record } from "fast-check";
import { describe, expect, it } from "vitest";
import { matchOf, queryWords } from "../../../src/kb/lexical/word-match.ts";
import { COSINE_NOISE, fallingScores, scoreOf } from "../../../src/kb/search/score.ts";

const share = double({ min: 0, max: 1, noNaN: true });
const cosine = double({ min: -1, max: 1, noNaN: true });
/** Words of a query of ten rare ones, of which a chunk holds some. */
const evidence = record({
  held: share,
  often: share,
  total: double({ min: 0.1, max: 10, noNaN: true }),
  cosine: option(cosine, { nil: undefined }),
}).map(({ held, often, total, cosine: own }) => {
  const matched = held * total;
  return { match: { matched, strength: matched * often }, total, cosine: own };
});

describe("the score of a chunk", () => {
  it("lies in [0, 1) and grows with each part of the evidence", () => {
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

  it("is 0 without a word but function words, and with a cosine of noise", () => {
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

  it("is at most 0.3 for a query of function words, however near by meaning", () => {
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
  it.each(SCORES)("by %s, lies where people expect it", (_name, score, from, to) => {
    expect(score).toBeGreaterThan(from);
    expect(score).toBeLessThan(to);
  });
});

describe("fallingScores", () => {
  const ranking = array(record({ mix: share, score: double({ min: 0.001, max: 1, noNaN: true }) }), {
    maxLength: 20,
  }).map((list) => list.toSorted((a, b) => b.mix - a.mix));

  it("falls with the rank, within the hits' own scores, and keeps their mean", () => {
    assert(
      property(ranking, (list) => {
        const scores = fallingScores(list);
        for (const [at, { mix }] of list.entries()) {
          const [score = 0, next = 0] = scores.slice(at);
          const isLast = at + 1 === list.length;
          expect(isLast || (list[at + 1]?.mix === mix ? next <= score : next < score)).toBe(true);
        }
        const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
        expect(sum(scores)).toBeCloseTo(sum(list.map(({ score }) => score)), 6);
        expect(Math.max(0, ...scores)).toBeLessThanOrEqual(
          Math.max(0, ...list.map(({ score }) => score)) + 1e-9,
        );
      }),
    );
  });

  it("is the hits' own where these fall by themselves", () => {
    const list = [
      { mix: 2, score: 0.8 },
      { mix: 1, score: 0.3 },
    ];
    expect(fallingScores(list)).toEqual([0.8, 0.3]);
  });

  it("gives neighbours in the wrong order the mean of both", () => {
    const list = [
      { mix: 3, score: 0.9 },
      { mix: 2, score: 0.3 },
      { mix: 1, score: 0.5 },
    ];
    const [best, second, third] = fallingScores(list);
    expect([best, second?.toFixed(6), third?.toFixed(6)]).toEqual([0.9, "0.400000", "0.400000"]);
    expect(second).toBeGreaterThan(third ?? 1);
  });
});

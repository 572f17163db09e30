import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { containsAnswer, figuresOf } from "../../src/lib/retrieval-figures.ts";

it("counts hits, reciprocal ranks and answers as defined, with failed questions as misses", () => {
  const figures = figuresOf([
    { rank: 1, answered: true, ms: 10 },
    { rank: 2, answered: false, ms: 20 },
    { rank: 4, answered: null, ms: 40 },
    { rank: null, answered: false, ms: null },
  ]);
  expect(figures).toEqual({
    questions: 4,
    hit1: 1 / 4,
    hit3: 2 / 4,
    mrr: (1 + 1 / 2 + 1 / 4) / 4,
    answer: 1 / 3,
    medianMs: 20,
  });
});

it("the figures have no share of answers where no question has one, no median where nothing was answered, and no NaN", () => {
  expect(figuresOf([{ rank: null, answered: null, ms: null }])).toMatchObject({
    answer: null,
    medianMs: null,
  });
  expect(figuresOf([])).toEqual({ questions: 0, hit1: 0, hit3: 0, mrr: 0, answer: null, medianMs: null });
});

it("takes the mean of the two middle times of an even number", () => {
  const times = [30, 1, 20, 900].map((ms) => ({ rank: 1, answered: null, ms }));
  expect(figuresOf(times).medianMs).toBe(25);
});

it("orders the figures: hit@1 ≤ MRR ≤ 1, and hit@1 ≤ hit@3", () => {
  const outcome = fc.record({
    rank: fc.option(fc.integer({ min: 1, max: 10 })),
    answered: fc.option(fc.boolean()),
    ms: fc.option(fc.nat()),
  });
  fc.assert(
    fc.property(fc.array(outcome, { minLength: 1 }), (outcomes) => {
      const { hit1, hit3, mrr } = figuresOf(outcomes);
      expect(hit1).toBeLessThanOrEqual(hit3);
      expect(hit1).toBeLessThanOrEqual(mrr + 1e-9);
      expect(mrr).toBeLessThanOrEqual(1 + 1e-9);
    }),
  );
});

describe("an answer stands in a passage", () => {
  const cases: readonly [what: string, passage: string, answer: string, stands: boolean][] = [
    ["as it is", "It lifts forty tons.", "forty tons", true],
    ["over a line break and indentation", "It lifts forty\n    tons.", "forty tons", true],
    ["with a line break of its own", "It lifts forty tons.", "forty\ntons", true],
    ["not in other letters", "It lifts Forty tons.", "forty tons", false],
    ["not with other words between", "forty heavy tons", "forty tons", false],
  ];
  it.each(cases)("an answer is found or missed %s", (_what, passage, answer, stands) => {
    expect(containsAnswer(passage, answer)).toBe(stands);
  });
});

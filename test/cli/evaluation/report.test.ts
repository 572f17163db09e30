import { expect, it } from "vitest";
import type { Outcome } from "../../../src/cli/evaluation/outcome.ts";
import { figuresOf } from "../../../src/lib/retrieval-figures.ts";
import { compareRuns, runOf } from "../../../src/cli/evaluation/last-runs.ts";
import { reportText, shortfalls, shortfallText } from "../../../src/cli/evaluation/report.ts";
import { localTime } from "../../../src/cli/output/progress.ts";

const AT = "2026-11-23T12:00:00.000Z";
const came = [
  { path: "b.md", score: 0.41 },
  { path: "b.md", score: 0.4 },
  { path: null, score: 0.2 },
];

function outcome(line: number, change: Partial<Outcome>): Outcome {
  const answer = change.answered === undefined || change.answered === null ? undefined : "x";
  const question = {
    question: `question ${line}`,
    expect: ["a.md", "c/**"],
    answer,
    source: undefined,
    line,
  };
  return { question, rank: 1, answered: null, ms: 3.14, came, problem: null, ...change };
}

const now = [
  outcome(2, { answered: true }),
  outcome(5, { rank: 2, answered: false }),
  outcome(8, { rank: 7 }),
  outcome(11, { rank: null, came: [], problem: "no synced file matches what is expected" }),
  outcome(14, { rank: null, ms: null, problem: "the service refuses the search: no" }),
];
const before = [
  outcome(2, { answered: true, rank: 2 }),
  outcome(5, { answered: true }),
  outcome(8, { rank: null }),
];
const last = compareRuns(runOf({ questions: "/q.yaml", tier: "fastest" }, AT, before), now);
const report = { tier: "fastest", isTrial: false, figures: figuresOf(now), outcomes: now, last } as const;
const trial = {
  tier: "moderate",
  isTrial: true,
  figures: figuresOf([{ rank: 1, answered: null, ms: 1234.5 }]),
  outcomes: [outcome(2, {})],
  last: null,
} as const;

it("shows a table, the missed questions with what came instead, and what changed since the last run", () => {
  expect(reportText("/work/q.yaml", [report, trial])).toBe(
    `\
tier              questions  hit@1  hit@3   MRR  answer  median ms
fastest                   5   0.20   0.40  0.33    0.50        3.1
moderate (trial)          1   1.00   1.00  1.00       -      1,235

fastest: 4 questions missed
  q.yaml:5  question 5
      found (rank 2), but the answer is in none of the first 3 passages
  q.yaml:8  question 8
      expected a.md, c/** (rank 7)
      came     b.md (0.41), another document (0.20)
  q.yaml:11  question 11
      no synced file matches what is expected
      expected a.md, c/**
      came     nothing
  q.yaml:14  question 14
      no result: the service refuses the search: no

fastest: since ${localTime(Date.parse(AT))}, 3 questions in both runs: hit@1 0.33, hit@3 0.67, MRR 0.50 → 0.55, answer 1.00 → 0.50
  worse   q.yaml:5  question 5: rank 1 → rank 2, answer lost
  better  q.yaml:2  question 2: rank 2 → rank 1
  better  q.yaml:8  question 8: not in 10 → rank 7
`,
  );
});

it("says so where no question is as it was", () => {
  const none = compareRuns(runOf({ questions: "/q.yaml", tier: "fastest" }, AT, []), now);
  expect(reportText("/q.yaml", [{ ...trial, last: none }])).toContain(
    "moderate: no question is as it was in the last run\n",
  );
});

it("lists twenty missed questions, and counts the others", () => {
  const outcomes = Array.from({ length: 23 }, (_, at) => outcome(at + 1, { rank: null }));
  const text = reportText("/q.yaml", [{ ...trial, outcomes }]);
  expect(text).toContain("moderate: 23 questions missed\n");
  expect(text.match(/q\.yaml:/g)?.length).toBe(20);
  expect(text).toMatch(/\n {2}and 3 more \(--json lists all\)\n$/);
});

it("lists the files that came in the order of their best passages", () => {
  const passages = ["a.md", "b.md", "a.md"].map((path, at) => ({ path, score: 0.9 - at / 10 }));
  const outcomes = [outcome(1, { rank: null, came: passages })];
  expect(reportText("/q.yaml", [{ ...trial, outcomes }])).toContain("came     a.md (0.90), b.md (0.80)\n");
});

it("escapes control characters of paths and questions", () => {
  const [first = outcome(1, {})] = now;
  const hostile = { ...first.question, question: "a\u001b[2Jb" };
  const outcomes = [{ ...first, rank: null, question: hostile }];
  expect(reportText("/q.yaml", [{ ...trial, outcomes }])).not.toContain("\u001b");
});

it("names each figure that is below its threshold, and none that equals it or has no questions", () => {
  const found = shortfalls([report, trial], { hit1: 0.2, hit3: 0.9, answer: 0.6 });
  expect(found).toEqual([
    { tier: "fastest", metric: "hit3", value: 0.4, min: 0.9 },
    { tier: "fastest", metric: "answer", value: 0.5, min: 0.6 },
  ]);
  expect(shortfallText(found)).toBe(
    "below the threshold: fastest hit@3 is 0.400, expected at least 0.9\n" +
      "below the threshold: fastest answer is 0.500, expected at least 0.6\n",
  );
});

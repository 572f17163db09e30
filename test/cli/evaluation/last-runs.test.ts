import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Outcome } from "../../../src/cli/evaluation/outcome.ts";
import { compareRuns, readLastRuns, runOf, storeRuns } from "../../../src/cli/evaluation/last-runs.ts";

function outcome(name: string, rank: number | null, answered: boolean | null = null): Outcome {
  const question = { question: name, expect: ["a.md"], answer: undefined, source: undefined, line: 1 };
  return { question, rank, answered, ms: 1, came: [], problem: null };
}
const AT = "2026-11-23T12:00:00.000Z";
const run = (...outcomes: Outcome[]) => runOf({ questions: "/q.yaml", tier: "fastest" }, AT, outcomes);

describe("a question", () => {
  type Side = readonly [rank: number | null, answered?: boolean | null];
  const cases: readonly [what: string, before: Side, now: Side, change: "worse" | "better" | "same"][] = [
    ["that ranks lower got worse", [1], [2], "worse"],
    ["that is found no more got worse", [9], [null], "worse"],
    ["whose answer left the passages got worse", [1, true], [1, false], "worse"],
    ["that ranks higher and lost its answer got worse", [2, true], [1, false], "worse"],
    ["that ranks higher got better", [3], [2], "better"],
    ["that is found at last got better", [null], [10], "better"],
    ["whose answer came into the passages got better", [1, false], [1, true], "better"],
    ["that ranks the same did not change", [2, true], [2, true], "same"],
    ["that is still not found did not change", [null], [null], "same"],
  ];
  it.each(cases)("a question %s", (_what, before, now, change) => {
    const { worse, better } = compareRuns(run(outcome("q", ...before)), [outcome("q", ...now)]);
    expect(worse.length > 0 ? "worse" : better.length > 0 ? "better" : "same").toBe(change);
    expect(worse.length + better.length).toBe(change === "same" ? 0 : 1);
  });

  it("a question that only one of two runs has is not compared", () => {
    const last = run(outcome("gone", 1), outcome("both", 2));
    const { at, before, now, worse, better } = compareRuns(last, [outcome("both", 1), outcome("new", null)]);
    expect({ at, worse }).toEqual({ at: AT, worse: [] });
    expect(better.map(({ question }) => question.question)).toEqual(["both"]);
    expect([before, now].map(({ questions, mrr }) => [questions, mrr])).toEqual([
      [1, 0.5],
      [1, 1],
    ]);
  });
});

describe("the stored runs", () => {
  let folder: string;
  beforeAll(() => void (folder = mkdtempSync(join(tmpdir(), "kbsync-last-runs-"))));
  afterAll(() => rmSync(folder, { recursive: true }));

  it("the stored runs are empty at first, then the last of each file and tier, and at most twenty", () => {
    expect(readLastRuns(folder)).toEqual([]);
    const first = run(outcome("q", 3));
    storeRuns(folder, [], [first]);
    expect(readLastRuns(folder)).toEqual([first]);
    const others = [
      run(outcome("q", 1)),
      runOf({ questions: "/q.yaml", tier: "moderate" }, AT, []),
      runOf({ questions: "/other.yaml", tier: "fastest" }, AT, []),
    ];
    storeRuns(folder, readLastRuns(folder), others);
    expect(readLastRuns(folder)).toEqual(others);
    const many = Array.from({ length: 19 }, (_, at) =>
      runOf({ questions: `/${at}.yaml`, tier: "fastest" }, AT, []),
    );
    storeRuns(folder, readLastRuns(folder), many);
    expect(readLastRuns(folder)).toEqual([...others.slice(2), ...many]);
  });

  it("the stored runs are refused where the file is damaged, with what to do", () => {
    writeFileSync(join(folder, "eval.json"), '{"runs":[{"questions":1}]}');
    expect(() => readLastRuns(folder)).toThrow(
      expect.objectContaining({ code: "state_unusable", hint: expect.stringContaining("Delete the file") }),
    );
  });
});

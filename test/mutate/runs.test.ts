import { describe, expect, it } from "vitest";
import { isSlower, type Ran, ranOf } from "./runs.ts";

const WAITED = "Error: waited in vain for the condition\n    at until";
const TIMED_OUT = "Error: Test timed out in 20000ms.\nIf this is a long-running test, pass a timeout value";
const WRONG = "AssertionError: expected 1 to be 2";

/** A report of one file whose tests ended like this. */
function report(...tests: { title: string; ms: number; failure?: string }[]) {
  const failed = tests.some(({ failure }) => failure !== undefined);
  const assertionResults = tests.map(({ title, ms, failure }) => ({
    fullName: title,
    duration: ms,
    status: failure === undefined ? "passed" : "failed",
    failureMessages: failure === undefined ? [] : [failure],
  }));
  const file = { name: "/copy/test/a.test.ts", status: failed ? "failed" : "passed", message: "" };
  return ranOf(
    { testResults: [{ ...file, assertionResults }] },
    "/copy",
    failed ? ["test/a.test.ts", "test/b.test.ts"] : [],
  );
}

describe("a failed run", () => {
  it.each([
    ["an assertion", WRONG, false],
    ["a wait of a test in vain", WAITED, true],
    ["the time limit of a test", TIMED_OUT, true],
  ])("a failed run for %s says whether it lacked time", (_name, failure, isLate) => {
    const ran = report({ title: "one", ms: 10 }, { title: "two", ms: 12_000, failure });
    expect(ran).toMatchObject({ failed: ["test/a.test.ts"], isLate });
  });

  it("a failed run with an assertion that failed is no late one, whatever else waited", () => {
    expect(
      report({ title: "one", ms: 9, failure: WRONG }, { title: "two", ms: 9, failure: WAITED }).isLate,
    ).toBe(false);
  });

  it("a run without a report failed as a whole, and is no late one", () => {
    expect(ranOf({ testResults: [] }, "/copy", ["test/b.test.ts"])).toMatchObject({
      failed: ["test/b.test.ts"],
      isLate: false,
    });
  });
});

describe("a mutation made a run late", () => {
  const mutated: Ran = { ...report({ title: "one", ms: 12_000, failure: WAITED }), tookMs: 14_000 };
  const asIs = (ms: number): Ran => ({ ...report({ title: "one", ms }), tookMs: 6000 });
  const unended: Ran = {
    failed: ["test/a.test.ts"],
    isLate: true,
    tookMs: 180_000,
    tests: new Map(),
    late: [],
  };

  it.each<[string, Ran, Ran, boolean]>([
    ["when the test is quick without it", mutated, asIs(4000), true],
    ["not when the test is nearly as slow without it", mutated, asIs(4001), false],
    [
      "not when the test fails without it",
      mutated,
      { ...report({ title: "one", ms: 9, failure: WAITED }), tookMs: 99 },
      false,
    ],
    ["not when the test did not run without it", mutated, { ...asIs(1), tests: new Map() }, false],
    ["when no run with it ends, and one without it soon does", unended, { ...asIs(1), tookMs: 60_000 }, true],
    [
      "not when no run with it ends, and one without it hardly does",
      unended,
      { ...asIs(1), tookMs: 60_001 },
      false,
    ],
  ])("a mutant counts as slower %s", (_name, withIt, without, expected) => {
    expect(isSlower(withIt, without)).toBe(expected);
  });
});

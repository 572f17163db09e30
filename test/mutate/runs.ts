import { spawn } from "node:child_process";
import { readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";

/** What vitest's report in JSON says of each test file. */
const TestReport = z.object({
  testResults: z.array(
    z.object({
      name: z.string(),
      status: z.string(),
      message: z.string().default(""),
      assertionResults: z
        .array(
          z.object({
            status: z.string(),
            fullName: z.string().default(""),
            duration: z.number().nullish(),
            failureMessages: z.array(z.string()).nullish(),
          }),
        )
        .default([]),
    }),
  ),
});
type TestReport = z.infer<typeof TestReport>;

/** What a test that waited in vain says: vitest's limits, and `until` of our own. */
const WAITED_IN_VAIN = /timed out in|waited in vain|did not succeed in time/i;
/** A run ended for lack of time only where the same tests take at most this share of it without the mutation. */
const QUICK_SHARE = 1 / 3;

/** How long tests may take. */
export interface Limits {
  /** All files of a run together. */
  readonly runSeconds: number;
  /** One test; without it what its suite allows. */
  readonly testSeconds?: number;
}

/** What came of a run of test files. */
export interface Ran {
  /** The files that failed, or did not end in time. */
  readonly failed: readonly string[];
  /** All that failed, failed for lack of time. */
  readonly isLate: boolean;
  readonly tookMs: number;
  /** Milliseconds of each test that ran, by its file and title; empty where the run did not end. */
  readonly tests: ReadonlyMap<string, number>;
  /** Those of `tests` that waited in vain. */
  readonly late: readonly string[];
}

/**
 * Whether a run that ended for lack of time was slow because of the mutation: without it nothing fails, and the same
 * tests take a third of the time at most. Pure.
 */
export function isSlower(mutated: Ran, asIs: Ran): boolean {
  if (asIs.failed.length > 0) return false;
  if (mutated.late.length === 0) return asIs.tookMs <= mutated.tookMs * QUICK_SHARE;
  return mutated.late.every((test) => {
    const ms = asIs.tests.get(test);
    return ms !== undefined && ms <= (mutated.tests.get(test) ?? 0) * QUICK_SHARE;
  });
}

/** Runs test files in a copy of the repository, either long ones or others, until the first fails. */
export async function runTests(copy: string, files: readonly string[], limits: Limits): Promise<Ran> {
  const startMs = performance.now();
  const report = join(copy, "mutate-report.json");
  rmSync(report, { force: true });
  const vitest = join(copy, "node_modules/vitest/vitest.mjs");
  const options = ["--reporter=json", `--outputFile=${report}`, "--maxWorkers=1", "--bail=1"];
  if (limits.testSeconds !== undefined) options.push(`--testTimeout=${limits.testSeconds * 1000}`);
  // A group of its own: what a test started and a mutation left running ends with it.
  const child = spawn(process.execPath, [vitest, "run", ...options, ...files], {
    cwd: copy,
    stdio: "ignore",
    detached: true,
  });
  const endGroup = (): void => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
    } catch {
      // All of it has ended.
    }
  };
  process.once("exit", endGroup);
  let timedOut = false;
  const timer = setTimeout(() => {
    timedOut = true;
    endGroup();
  }, limits.runSeconds * 1000);
  const { promise, resolve } = Promise.withResolvers<number | null>();
  child.once("close", resolve);
  const code = await promise;
  clearTimeout(timer);
  endGroup();
  process.off("exit", endGroup);
  const tookMs = performance.now() - startMs;
  if (timedOut) return { failed: files, isLate: true, tookMs, tests: new Map(), late: [] };
  // Where the run ended without a report, all of it failed.
  const hasReport = statSync(report, { throwIfNoEntry: false }) !== undefined;
  const found: TestReport = hasReport
    ? TestReport.parse(JSON.parse(readFileSync(report, "utf8")))
    : { testResults: [] };
  return { ...ranOf(found, copy, code === 0 ? [] : files), tookMs };
}

/** What a report says; `failing` are the files that count as failed where it names none. Pure. */
export function ranOf(
  { testResults }: TestReport,
  copy: string,
  failing: readonly string[],
): Omit<Ran, "tookMs"> {
  const tests = new Map<string, number>();
  const late: string[] = [];
  const failed: string[] = [];
  let isLate = true;
  for (const { name, status, message, assertionResults } of testResults) {
    const file = name.replace(`${copy}/`, "");
    // Files that the first failure broke off are called failed too.
    const wrong = assertionResults.filter((each) => each.status === "failed");
    if (status === "failed" && (message !== "" || wrong.length > 0)) failed.push(file);
    if (status === "failed" && message !== "" && wrong.length === 0) isLate = false;
    for (const each of assertionResults) tests.set(`${file} ${each.fullName}`, each.duration ?? 0);
    for (const { fullName, failureMessages } of wrong)
      if (failureMessages?.some((words) => WAITED_IN_VAIN.test(words)) === true)
        late.push(`${file} ${fullName}`);
      else isLate = false;
  }
  if (failing.length === 0) return { failed: [], isLate: false, tests, late: [] };
  return { failed: failed.length === 0 ? failing : failed, isLate: isLate && late.length > 0, tests, late };
}

import type { Reporter, TestCase } from "vitest/node";

/**
 * How often a failed test is tried once more: never, unless KBSYNC_TEST_RETRIES says so, as `.ci/run` does.
 * Most suites run real processes against a real clock; a machine that stalls for seconds fails one of them once,
 * a bug fails it each time. The reporter names each test that needed a second try.
 */
export const RETRIES = Number(process.env["KBSYNC_TEST_RETRIES"] ?? 0);

/** Says why each test that passed on its second try failed on the first: a retry hides a race, and its cause has to be mended. */
export class RetryReporter implements Reporter {
  readonly #lines: string[] = [];

  onTestCaseResult(test: TestCase): void {
    const { state, errors = [] } = test.result();
    if (state !== "passed") return;
    for (const { message, stacks } of errors) {
      const [{ file, line } = { file: test.module.moduleId, line: 0 }] = stacks ?? [];
      this.#lines.push(
        `RETRIED  ${test.module.relativeModuleId} > ${test.fullName}\n${message}\n  at ${file}:${line}`,
      );
    }
  }

  onTestRunEnd(): void {
    for (const text of this.#lines) process.stdout.write(`\n${text}\n`);
  }
}

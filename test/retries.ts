/**
 * How often a failed test is tried once more: never, unless KBSYNC_TEST_RETRIES says so, as `.ci/run` does.
 * Most suites run real processes against a real clock; a machine that stalls for seconds fails one of them once,
 * a bug fails it each time. The reporter names each test that needed a second try.
 */
export const RETRIES = Number(process.env["KBSYNC_TEST_RETRIES"] ?? 0);

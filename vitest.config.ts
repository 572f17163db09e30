import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { keepCompiled } from "./test/compile-cache.ts";
import { EndReporter } from "./test/end-reporter.ts";
import { RETRIES } from "./test/retries.ts";
import { LONG_TESTS } from "./vitest.long.config.ts";

/** Suites that start real programs or take minutes have scripts of their own (see package.json). */
const LONG = [
  "test/e2e/**",
  "test/crash/**",
  "test/package/**",
  "test/systemd/**",
  "test/kb/store/sqlite/crash.test.ts",
  "test/sync/daemon/crash.test.ts",
  ...LONG_TESTS,
  "test/sync/scenarios/long/**",
  "node_modules/**",
];
/** What puts a module in another one's place, or counts what the whole process does. */
export const ALONE = [
  "test/cli/doctor-checks/folders.test.ts",
  "test/kb/chat/fair-images.test.ts",
  "test/kb/embed/local-restart.test.ts",
  "test/kb/resources/job-runner.test.ts",
  "test/sync/pass/{coarse-times,renames}.test.ts",
  "test/sync/scan/{case-blind,scan-faults,scan-mounts}.test.ts",
  "test/sync/watch/degraded.test.ts",
  "test/sync/ledger/large-inodes.test.ts",
  "test/sync/agenda/rescans.test.ts",
  "test/sync/source/resume-while-looking.test.ts",
  "test/sync/daemon/trouble.test.ts",
  "test/sync/watch/network.test.ts",
  "test/sync/audit/schedule.test.ts",
  "test/sync/control/control.test.ts",
  "test/sync/read/{read,read-faults}.test.ts",
  "test/sync/pass/pass.test.ts",
  "test/sync/watch/{source-watch,thread}.test.ts",
];

keepCompiled();

export default defineConfig({
  test: {
    testTimeout: 20_000,
    retry: RETRIES,
    reporters: ["default", new EndReporter()],
    // Tests wait for timers and processes a third of the time.
    maxWorkers: Math.ceil(1.5 * availableParallelism()),
    // chokidar runs on memfs only when it and its walker are both inlined; with one alone it sees nothing.
    server: { deps: { inline: ["chokidar", "readdirp"] } },
    projects: [
      // Loading the same modules for each of a hundred files would take a third of the time.
      {
        extends: true,
        test: {
          name: "shared",
          include: ["test/**/*.test.ts"],
          exclude: [...LONG, ...ALONE],
          isolate: false,
        },
      },
      { extends: true, test: { name: "alone", include: ALONE, exclude: LONG } },
    ],
  },
});

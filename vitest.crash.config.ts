import { defineConfig } from "vitest/config";
import { EndReporter } from "./test/end-reporter.ts";
import { RETRIES } from "./test/retries.ts";

/** The built program against kill -9, a network that fails and disks that are full: processes, sockets and mounts are real. */
export default defineConfig({
  test: {
    include: [
      "test/crash/**/*.test.ts",
      "test/kb/store/sqlite/crash.test.ts",
      "test/sync/daemon/crash.test.ts",
    ],
    env: { KBSYNC_TEST_KILLS: "10", KBSYNC_TEST_STRIDE: "1" },
    testTimeout: 120_000,
    retry: RETRIES,
    reporters: ["default", new EndReporter()],
    hookTimeout: 120_000,
    // Each file starts programs of its own, which wait more than they work: two at a time keep two processors busy.
    maxWorkers: 2,
  },
});

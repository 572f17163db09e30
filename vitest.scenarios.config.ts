import { defineConfig } from "vitest/config";
import { EndReporter } from "./test/end-reporter.ts";
import { RETRIES } from "./test/retries.ts";

/** Scenarios on a real disk with thousands of files, or with the program as a process of its own. */
export default defineConfig({
  test: {
    include: ["test/sync/scenarios/long/**/*.test.ts"],
    testTimeout: 300_000,
    retry: RETRIES,
    reporters: ["default", new EndReporter()],
    hookTimeout: 60_000,
    // Each keeps disk and processors busy; side by side they would only wait for each other.
    fileParallelism: false,
  },
});

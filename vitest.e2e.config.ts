import { defineConfig } from "vitest/config";
import { EndReporter } from "./test/end-reporter.ts";
import { RETRIES } from "./test/retries.ts";

/** The built program as a user runs it: real processes, real folders, real sockets. */
export default defineConfig({
  test: {
    include: ["test/e2e/**/*.test.ts"],
    testTimeout: 120_000,
    retry: RETRIES,
    reporters: ["default", new EndReporter()],
    hookTimeout: 120_000,
    maxWorkers: "100%",
  },
});

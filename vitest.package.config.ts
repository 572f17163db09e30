import { defineConfig } from "vitest/config";
import { EndReporter } from "./test/end-reporter.ts";

/** What is handed out: packed, built and installed as a user installs it. Its steps build on each other. */
export default defineConfig({
  test: {
    include: ["test/package/**/*.test.ts"],
    testTimeout: 600_000,
    hookTimeout: 600_000,
    fileParallelism: false,
    reporters: ["verbose", new EndReporter()],
  },
});

import { defineConfig } from "vitest/config";
import { EndReporter } from "./test/end-reporter.ts";

/** The built program under a real systemd in a container. Its steps build on each other, so that none is tried again. */
export default defineConfig({
  test: {
    include: ["test/systemd/**/*.test.ts"],
    testTimeout: 300_000,
    hookTimeout: 300_000,
    fileParallelism: false,
    globalSetup: ["test/systemd/packages.ts"],
    // Each step as it is done: some wait for a start.
    reporters: ["verbose", new EndReporter()],
  },
});

import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    // Suites that start real processes or take minutes have scripts of their own (see package.json).
    exclude: [
      "test/e2e/**",
      "test/crash/**",
      "test/long/**",
      "test/sync/scenarios/long/**",
      "node_modules/**",
    ],
    testTimeout: 20_000,
    // chokidar runs on memfs only when it and its walker are both inlined; with one alone it sees nothing.
    server: { deps: { inline: ["chokidar", "readdirp"] } },
  },
});

import { defineConfig } from "vitest/config";

/** What takes minutes and needs no build; each has a script of its own. */
export default defineConfig({
  test: {
    include: ["test/long/**/*.test.ts"],
    testTimeout: 900_000,
    hookTimeout: 120_000,
    maxWorkers: "100%",
  },
});

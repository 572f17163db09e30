import { defineConfig } from "vitest/config";
import { RETRIES } from "./test/retries.ts";

/** Tests of single parts that keep a processor busy for more than a moment: recognising text, killing services. */
export const LONG_TESTS = [
  "test/long/**/*.test.ts",
  "test/kb/ingest/extract/ocr.test.ts",
  "test/kb/service/kill-queues.test.ts",
];

export default defineConfig({
  test: { include: LONG_TESTS, testTimeout: 120_000, hookTimeout: 60_000, retry: RETRIES },
});

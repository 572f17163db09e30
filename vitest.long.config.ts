import { defineConfig } from "vitest/config";
import { keepCompiled } from "./test/compile-cache.ts";
import { EndReporter } from "./test/end-reporter.ts";
import { RETRIES } from "./test/retries.ts";

/**
 * Tests of single parts that start processes by the dozen, or work for ten seconds: recognising text, hostile documents,
 * killing services, the embedding model.
 */
export const LONG_TESTS = [
  "test/cli/output/journal.test.ts",
  "test/cli/commands/{key,restore,up}.test.ts",
  "test/cli/state/no-home.test.ts",
  "test/kb/chat/{builtin-images,full-disk,images,kill,rendered,webhook,webhook-ends,webhook-order}.test.ts",
  "test/kb/embed/local.test.ts",
  "test/kb/ingest/extract/{extract,foreign-words,hostile-pdf,ocr,stall}.test.ts",
  "test/kb/http/{mails,partly-read}.test.ts",
  "test/kb/http/public-address.test.ts",
  "test/kb/oracle/long-oracle.test.ts",
  "test/kb/service/{model,model-change,kill,kill-model,kill-queues,stop}.test.ts",
  "test/lib/folder-lock.test.ts",
  "test/long/image-recall.test.ts",
  "test/simulate/simulate.test.ts",
  "test/sync/document/{foreign-words,formats}.test.ts",
  "test/sync/adopt/adopt-crash.test.ts",
  "test/sync/remote/long-work.test.ts",
  "test/sync/scenarios/writers.test.ts",
];

keepCompiled();

export default defineConfig({
  test: {
    include: LONG_TESTS,
    testTimeout: 120_000,
    hookTimeout: 60_000,
    // Most wait for programs that they started.
    maxWorkers: 2,
    retry: RETRIES,
    reporters: ["default", new EndReporter()],
  },
});

import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { keepCompiled } from "./test/compile-cache.ts";
import { EndReporter } from "./test/end-reporter.ts";
import { TEST_FOLDER } from "./test/memory-folder.ts";
import { RETRIES, RetryReporter } from "./test/retries.ts";
import { WAIT } from "./test/wait.ts";

/**
 * Tests of single parts that start processes by the dozen, or work for ten seconds: recognising text, hostile documents,
 * killing services, the embedding model, intervals of seconds, hundreds of connections.
 */
export const LONG_TESTS = [
  "test/cli/one-truth.test.ts",
  "test/cli/output/journal.test.ts",
  "test/cli/commands/{key,restore,up}.test.ts",
  "test/cli/state/no-home.test.ts",
  "test/formats/{foreign-words,formats}.test.ts",
  "test/kb/chat/{builtin-images,fair-images,full-disk,images,kill,rendered,webhook,webhook-ends,webhook-order}.test.ts",
  "test/kb/embed/local.test.ts",
  "test/kb/ingest/extract/{extract,foreign-words,hostile-pdf,ocr,stall}.test.ts",
  "test/kb/http/{events,limits,mails,one-account,partly-read,public-address}.test.ts",
  "test/kb/oracle/long-oracle.test.ts",
  "test/kb/jobs/{job-fairness,job-runner,read-in-parts}.test.ts",
  "test/kb/service/{model,model-change,kill-erase,kill-model,kill-queues,stop}.test.ts",
  "test/kb/store/sqlite/bounds.test.ts",
  "test/kb/uploads/ceph/ceph.test.ts",
  "test/lib/{capped/pool,folder-lock}.test.ts",
  "test/long/{citations,image-recall,ordinary-documents}.test.ts",
  "test/mcp/conformance.test.ts",
  "test/simulate/{histories,simulate}.test.ts",
  "test/sync/operate/status.test.ts",
  "test/sync/send/remote/{false-404,long-work,pressure,request-keys}.test.ts",
  "test/sync/scenarios/{folders,links,writers}.test.ts",
];

/**
 * Tests of random cases that take seconds. `npm test` draws a part of the cases, the long suite all: `test/random-runs.ts`.
 */
const RANDOM_TESTS = [
  "test/kb/http/fuzz/openapi-fuzz.test.ts",
  "test/kb/index/words/words.test.ts",
  "test/kb/ingest/chunk/{meaning,recursive}-laws.test.ts",
  "test/kb/oracle/oracle.test.ts",
  "test/kb/search/context.test.ts",
  "test/kb/search/position.test.ts",
  "test/kb/store/sqlite/words/word-simulation.test.ts",
  "test/sync/daemon/agenda/path-states.test.ts",
  "test/sync/operate/preview.test.ts",
  "test/sync/scan/rules/rules.test.ts",
];

/** The built program against kill -9, a network that fails and full disks: processes, sockets and mounts are real. */
const CRASH = ["test/crash/**/*.test.ts", "test/sync/daemon/crash.test.ts"];
/** Scenarios on a real disk with thousands of files, or with the program in a process of its own. */
const SCENARIOS = ["test/sync/scenarios/long/**/*.test.ts"];
/** The built program as a user runs it: real processes, real folders, real sockets. */
const E2E = ["test/e2e/**/*.test.ts"];
/** What is released: packed, built and installed as a user installs it. The steps build on each other. */
const PACKAGE = ["test/package/**/*.test.ts"];
/** The built program under a real systemd in a container. The steps build on each other, so none is retried. */
const SYSTEMD = ["test/systemd/**/*.test.ts"];
/** The store in PostgreSQL, on a server that the suite starts. */
const POSTGRES = ["test/kb/store/postgres/**/*.test.ts"];
/** Tests that need pgvector. */
const PGVECTOR = ["test/kb/store/postgres/pgvector/*.test.ts"];
/** What a second version of the server, with pgvector, runs: the contracts of the ports, and the results of searches. */
const SECOND_SERVER = [
  ...PGVECTOR,
  "test/kb/store/postgres/{contract,index-contract,same-results}.test.ts",
  "test/kb/store/postgres/database/migrate.test.ts",
  "test/kb/store/postgres/queue/queue.test.ts",
];
/** The built console in a browser. */
const CONSOLE = ["test/console/browser/**/*.test.ts"];
const NOT_UNIT = [
  ...LONG_TESTS,
  ...CRASH,
  ...SCENARIOS,
  ...E2E,
  ...PACKAGE,
  ...SYSTEMD,
  ...CONSOLE,
  ...POSTGRES,
  "node_modules/**",
];

/** Tests that replace a module, or count what the whole process does: each file loads its modules anew. */
export const ALONE = [
  "test/cli/doctor-checks/folders.test.ts",
  "test/kb/embed/local-restart.test.ts",
  "test/kb/jobs/{busy-machine,kept-pages,overtaken-read}.test.ts",
  "test/sync/daemon/pass/{coarse-times,renames}.test.ts",
  "test/sync/scan/{case-blind,folder-contents,scan-faults,scan-mounts}.test.ts",
  "test/sync/watch/degraded.test.ts",
  "test/sync/ledger/large-inodes.test.ts",
  "test/sync/daemon/source/resume-during-check.test.ts",
  "test/sync/watch/network.test.ts",
  "test/sync/scan/read/read-faults.test.ts",
  "test/sync/daemon/pass/pass.test.ts",
  "test/sync/watch/{source-watch,thread}.test.ts",
];

/** Long tests that replace a module, or measure the whole process: each file has a process of its own. */
export const LONG_ALONE = [
  "test/formats/formats.test.ts",
  "test/kb/chat/fair-images.test.ts",
  "test/kb/ingest/extract/{extract,stall}.test.ts",
  "test/kb/jobs/job-runner.test.ts",
];

/** chokidar runs on memfs only when it and its walker are both inlined; with one alone it sees nothing. */
const inlined = { deps: { inline: ["chokidar", "readdirp"] } };
/** Unit tests wait for timers and processes a third of the time. */
const unitWorkers = Math.ceil(1.5 * availableParallelism());
/** Processes register where commands look for them. */
const ownRegistry = { setupFiles: ["test/own-registry.ts"] };
/** `expect.poll` waits as long as `vi.waitFor` does in the tests. */
const common = { retry: RETRIES, expect: { poll: WAIT } };
const inMemory = { env: { TMPDIR: TEST_FOLDER }, globalSetup: ["test/memory-folder.ts"] };
/** The files of a worker share its process and its modules, which saves a third of a second of processor time a file, or more. */
const sharedModules = { isolate: false };
const someRandomRuns = { KBSYNC_TEST_RUNS_SHARE: process.env["KBSYNC_TEST_RUNS_SHARE"] ?? "0.25" };

/** What `long` and `long-alone` share. */
const long = {
  setupFiles: [...ownRegistry.setupFiles, "test/idle-threads.ts"],
  ...inMemory,
  testTimeout: 120_000,
  hookTimeout: 60_000,
  ...common,
  // Most wait for programs that they started.
  maxWorkers: 2,
  sequence: { groupOrder: 1 },
};

keepCompiled();

/** `npm test` runs the projects `unit` and `unit-alone`; every other one has a script in package.json. */
export default defineConfig({
  test: {
    reporters: ["default", new RetryReporter(), new EndReporter()],
    projects: [
      {
        test: {
          name: "unit",
          include: ["test/**/*.test.ts"],
          exclude: [...NOT_UNIT, ...ALONE],
          // Loading the same modules for each of a hundred files would take a third of the time.
          isolate: false,
          setupFiles: ["test/idle-threads.ts"],
          testTimeout: 20_000,
          hookTimeout: 20_000,
          ...common,
          maxWorkers: unitWorkers,
          server: inlined,
          ...inMemory,
          env: { ...inMemory.env, ...someRandomRuns },
        },
      },
      {
        test: {
          name: "unit-alone",
          include: ALONE,
          exclude: NOT_UNIT,
          isolate: false,
          setupFiles: ["test/fresh-modules.ts"],
          testTimeout: 20_000,
          hookTimeout: 20_000,
          ...common,
          maxWorkers: unitWorkers,
          server: inlined,
          ...inMemory,
        },
      },
      {
        test: {
          name: "long",
          ...long,
          ...sharedModules,
          include: [...LONG_TESTS, ...RANDOM_TESTS],
          exclude: LONG_ALONE,
        },
      },
      { test: { name: "long-alone", ...long, include: LONG_ALONE } },
      {
        test: {
          name: "scenarios",
          ...ownRegistry,
          ...sharedModules,
          include: SCENARIOS,
          testTimeout: 300_000,
          hookTimeout: 60_000,
          ...common,
          // Each keeps disk and processors busy; side by side they would only wait for each other.
          fileParallelism: false,
          sequence: { groupOrder: 2 },
        },
      },
      {
        test: {
          name: "e2e",
          ...ownRegistry,
          ...sharedModules,
          include: E2E,
          testTimeout: 120_000,
          hookTimeout: 120_000,
          ...common,
          maxWorkers: "100%",
          sequence: { groupOrder: 3 },
        },
      },
      {
        test: {
          name: "crash",
          ...ownRegistry,
          ...sharedModules,
          include: CRASH,
          env: { KBSYNC_TEST_STRIDE: "1" },
          testTimeout: 120_000,
          hookTimeout: 120_000,
          ...common,
          // Each file starts programs of its own, which wait more than they work: two at a time keep two processors busy.
          maxWorkers: 2,
          sequence: { groupOrder: 4 },
        },
      },
      {
        test: {
          name: "console",
          ...ownRegistry,
          ...sharedModules,
          include: CONSOLE,
          testTimeout: 60_000,
          hookTimeout: 60_000,
          ...common,
          sequence: { groupOrder: 7 },
        },
      },
      {
        test: {
          name: "package",
          include: PACKAGE,
          globalSetup: ["test/package/packed.ts"],
          testTimeout: 600_000,
          hookTimeout: 600_000,
          fileParallelism: false,
          sequence: { groupOrder: 5 },
        },
      },
      {
        test: {
          name: "postgres",
          ...sharedModules,
          include: POSTGRES,
          exclude: PGVECTOR,
          globalSetup: ["test/kb/store/postgres/server.ts"],
          testTimeout: 120_000,
          hookTimeout: 120_000,
          ...common,
          maxWorkers: 2,
          sequence: { groupOrder: 8 },
        },
      },
      {
        test: {
          name: "postgres-pgvector",
          ...sharedModules,
          include: SECOND_SERVER,
          globalSetup: ["test/kb/store/postgres/server.ts"],
          testTimeout: 120_000,
          hookTimeout: 120_000,
          ...common,
          maxWorkers: 2,
          sequence: { groupOrder: 8 },
        },
      },
      {
        test: {
          name: "systemd",
          include: SYSTEMD,
          testTimeout: 300_000,
          hookTimeout: 300_000,
          fileParallelism: false,
          globalSetup: ["test/systemd/packages.ts"],
          sequence: { groupOrder: 6 },
        },
      },
    ],
  },
});

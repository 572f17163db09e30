// Changes a line of the sources at a time and runs the tests near it: `npm run mutate -- src/sync/ledger --sample 20 --seed 7`.
// What no test notices is printed last. It works on a copy: the working tree is only read.
import { execFileSync, spawn } from "node:child_process";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { z } from "zod";
import { describeMutation, mutate, type Mutation, mutationsOf, sample } from "./mutations.ts";
import { openNearby } from "./nearby.ts";

const REPOSITORY = fileURLToPath(new URL("../..", import.meta.url));
/** Tests that run first: most mutations are noticed by them. */
const FIRST_TESTS = 2;
/** What vitest's report in JSON says of each test file. */
const TestReport = z.object({
  testResults: z.array(
    z.object({
      name: z.string(),
      status: z.string(),
      message: z.string().default(""),
      assertionResults: z.array(z.object({ status: z.string() })).default([]),
    }),
  ),
});

const { values, positionals: folders } = parseArgs({
  allowPositionals: true,
  options: {
    sample: { type: "string", default: "20" },
    seed: { type: "string", default: "1" },
    /** Most test files for a mutation. */
    tests: { type: "string", default: "10" },
    /** Longest run of the tests of one mutation, in seconds. One that does not end was noticed. */
    timeout: { type: "string", default: "180" },
    /** Mutations that run side by side, each in a copy of its own. */
    workers: { type: "string", default: "1" },
  },
});

/** A mutation of a file of the repository, with the tests that it runs against. */
interface Mutant {
  readonly file: string;
  readonly mutation: Mutation;
  readonly words: string;
  readonly tests: readonly string[];
}

/** What came of a run of tests: the files that failed, or that it did not end in time. */
interface Ran {
  readonly failed: readonly string[];
  readonly timedOut: boolean;
}

/** Whether a test file passes without a mutation, as far as that was tried. */
const sound = new Map<string, boolean>();
const say = (text: string): void => void process.stdout.write(`${text}\n`);

await main();

async function main(): Promise<void> {
  if (folders.length === 0) throw new Error("name the folders or files to mutate, such as src/sync/ledger");
  const mutants = drawMutants();
  const scratch = mkdtempSync(join(tmpdir(), "kbsync-mutate-"));
  process.once("SIGINT", () => process.exit(130));
  process.once("exit", () => rmSync(scratch, { recursive: true, force: true }));
  const copies = Array.from({ length: Number(values.workers) }, (_, at) =>
    copyTree(join(scratch, String(at))),
  );

  const survivors: Mutant[] = [];
  const rest = mutants.values();
  const work = async (copy: string): Promise<void> => {
    for (const mutant of rest) {
      const by = await noticedBy(copy, mutant);
      if (by === undefined) survivors.push(mutant);
      say(
        `${(by === undefined ? "SURVIVED" : "noticed").padEnd(11)} ${wordsOf(mutant)}${by === undefined ? "" : `  [${by}]`}`,
      );
    }
  };
  await Promise.all(copies.map(work));

  const noticed = mutants.length - survivors.length;
  say(
    `\nnoticed ${noticed} of ${mutants.length}: ${Math.round((100 * noticed) / Math.max(1, mutants.length))} %`,
  );
  for (const survivor of survivors)
    say(`survived    ${wordsOf(survivor)}\n            ran ${survivor.tests.join(" ") || "no test"}`);
}

function wordsOf({ file, mutation, words }: Mutant): string {
  return `${file}:${mutation.line}  ${words}`;
}

/** The sample of all mutations of the folders, in the order in which it was drawn. */
function drawMutants(): Mutant[] {
  const files = folders.flatMap((folder) => sourcesBelow(folder)).toSorted();
  const all = files.flatMap((file) => {
    const text = readFileSync(join(REPOSITORY, file), "utf8");
    return mutationsOf(text).map((mutation) => ({ file, mutation, words: describeMutation(text, mutation) }));
  });
  const nearby = openNearby(REPOSITORY);
  const limit = Number(values.tests);
  return sample(all, Number(values.sample), Number(values.seed)).map(({ file, mutation, words }) => {
    return { file, mutation, words, tests: nearby.testsOf(file, limit) };
  });
}

function sourcesBelow(path: string): string[] {
  const clean = path.replace(/\/+$/, "");
  if (!statSync(join(REPOSITORY, clean)).isDirectory()) return [clean];
  const names = readdirSync(join(REPOSITORY, clean), { recursive: true, encoding: "utf8" });
  return names.filter((name) => name.endsWith(".ts")).map((name) => join(clean, name));
}

/** Copies what belongs to the repository, changed and new files as they are; what npm installed is shared. */
function copyTree(to: string): string {
  const list = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
  const names = execFileSync("git", list, { cwd: REPOSITORY, encoding: "utf8" }).split("\0");
  for (const name of names) {
    const from = join(REPOSITORY, name);
    if (name === "" || statSync(from, { throwIfNoEntry: false })?.isFile() !== true) continue;
    mkdirSync(dirname(join(to, name)), { recursive: true });
    cpSync(from, join(to, name));
  }
  symlinkSync(join(REPOSITORY, "node_modules"), join(to, "node_modules"));
  return to;
}

/** Runs the tests of a mutation, the nearest first; what noticed it, undefined where nothing did. */
async function noticedBy(copy: string, mutant: Mutant): Promise<string | undefined> {
  const first = mutant.tests.slice(0, FIRST_TESTS);
  for (const part of [first, mutant.tests.slice(FIRST_TESTS)]) {
    for (;;) {
      const tests = part.filter((test) => sound.get(test) !== false);
      if (tests.length === 0) break;
      const { failed, timedOut } = await runMutated(copy, mutant, tests);
      if (timedOut) {
        // On a machine that is busy the tests may take as long without it.
        const asIs = await runTests(copy, tests, Number(values.timeout));
        if (!asIs.timedOut) return "no end";
        say(`left out    ${tests.join(" ")} took longer than ${values.timeout} s without a mutation`);
        for (const test of tests) sound.set(test, false);
        continue;
      }
      if (failed.length === 0) break;
      // A test that fails without the mutation too has noticed nothing.
      for (const test of failed) await checkSound(copy, test);
      const by = failed.filter((test) => sound.get(test) === true);
      if (by.length > 0) return by.join(" ");
    }
  }
  return undefined;
}

async function checkSound(copy: string, test: string): Promise<void> {
  if (sound.has(test)) return;
  const { failed, timedOut } = await runTests(copy, [test], Number(values.timeout));
  sound.set(test, failed.length === 0 && !timedOut);
  if (sound.get(test) === false) say(`left out    ${test} fails without a mutation`);
}

async function runMutated(copy: string, { file, mutation }: Mutant, tests: readonly string[]): Promise<Ran> {
  const path = join(copy, file);
  const text = readFileSync(path, "utf8");
  writeFileSync(path, mutate(text, mutation));
  try {
    return await runTests(copy, tests, Number(values.timeout));
  } finally {
    writeFileSync(path, text);
  }
}

/** Runs test files in a copy, until the first fails. */
async function runTests(copy: string, tests: readonly string[], timeoutSeconds: number): Promise<Ran> {
  const report = join(copy, "mutate-report.json");
  rmSync(report, { force: true });
  const vitest = join(REPOSITORY, "node_modules/vitest/vitest.mjs");
  const options = ["--reporter=json", `--outputFile=${report}`, "--maxWorkers=1", "--bail=1"];
  // A group of its own: what a test started and a mutation left running ends with it.
  const child = spawn(process.execPath, [vitest, "run", ...options, ...tests], {
    cwd: copy,
    stdio: "ignore",
    detached: true,
  });
  const endGroup = (): void => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
    } catch {
      // All of it has ended.
    }
  };
  process.once("exit", endGroup);
  let timedOut = false;
  const timer = setTimeout(() => {
    timedOut = true;
    endGroup();
  }, timeoutSeconds * 1000);
  const { promise, resolve } = Promise.withResolvers<number | null>();
  child.once("close", resolve);
  const code = await promise;
  clearTimeout(timer);
  endGroup();
  process.off("exit", endGroup);
  if (timedOut || code === 0) return { failed: [], timedOut };
  return { failed: failedOf(report, copy, tests), timedOut };
}

/** The test files that failed, as far as a report says; all of them where the run ended without one. */
function failedOf(report: string, copy: string, tests: readonly string[]): readonly string[] {
  if (statSync(report, { throwIfNoEntry: false }) === undefined) return tests;
  const { testResults } = TestReport.parse(JSON.parse(readFileSync(report, "utf8")));
  // Files that the first failure broke off are called failed too.
  const failed = testResults.filter(
    ({ status, message, assertionResults }) =>
      status === "failed" && (message !== "" || assertionResults.some((each) => each.status === "failed")),
  );
  const names = failed.map(({ name }) => name.replace(`${copy}/`, ""));
  return names.length === 0 ? tests : names;
}

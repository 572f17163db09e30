// Changes a line of the sources at a time and runs the tests near it: `npm run mutate -- src/sync/ledger --sample 20 --seed 7`.
// What no test notices is printed last. It works on a copy: the working tree is only read.
import { execFileSync } from "node:child_process";
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
import { describeMutation, mutate, type Mutation, mutationsOf, sample } from "./mutations.ts";
import { isLong, openNearby } from "./nearby.ts";
import { isSlower, type Limits, type Ran, runTests } from "./runs.ts";
import { openTypeCheck } from "./type-check.ts";

const REPOSITORY = fileURLToPath(new URL("../..", import.meta.url));
/** Tests that run first: most mutations are noticed by them. */
const FIRST_TESTS = 2;
/**
 * The simulation's seeds and recorded histories run the whole daemon in seconds, and in virtual time, so that a busy machine
 * does not make them fail. They run last, after the tests near a mutation.
 */
const HISTORIES = "test/simulate/histories.test.ts";
const DAEMON = "src/sync/";
/** Attempts at a run that ended for lack of time, before it counts as undecided. */
const LATE_TRIES = 2;

const { values, positionals: folders } = parseArgs({
  allowPositionals: true,
  options: {
    sample: { type: "string", default: "20" },
    seed: { type: "string", default: "1" },
    /** Most test files for a mutation. */
    tests: { type: "string", default: "20" },
    /** Longest run of the tests of one mutation, in seconds. */
    timeout: { type: "string", default: "180" },
    /** Longest test, in seconds, on a machine too busy for the limits of the suites. */
    "test-timeout": { type: "string" },
    /** Mutations that run side by side, each in a copy of its own. */
    workers: { type: "string", default: "1" },
    help: { type: "boolean", default: false },
  },
});
if (values.help) {
  process.stdout.write(
    "npm run mutate -- FOLDER… [--sample 20] [--seed 1] [--tests 20] [--timeout SECONDS] [--test-timeout SECONDS] [--workers 1]\n",
  );
  process.exit();
}

/** A mutation of a file of the repository, with the tests that it runs against. */
interface Mutant {
  readonly file: string;
  readonly mutation: Mutation;
  readonly words: string;
  readonly tests: readonly string[];
}

/** What came of a mutation. `timed out`: with it, and only with it, a test waits in vain. `undecided`: the machine was too busy to say. */
interface Verdict {
  readonly kind: "noticed" | "timed out" | "undecided" | "SURVIVED";
  /** The test files that it failed. */
  readonly by: readonly string[];
}

/** Whether a test file passes without a mutation, as far as that was tried. */
const sound = new Map<string, boolean>();
const limits: Limits = {
  runSeconds: Number(values.timeout),
  ...(values["test-timeout"] !== undefined && { testSeconds: Number(values["test-timeout"]) }),
};
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

  const outcomes: { readonly mutant: Mutant; readonly verdict: Verdict }[] = [];
  const rest = mutants.values();
  const work = async (copy: string): Promise<void> => {
    for (const mutant of rest) {
      const verdict = await judge(copy, mutant);
      outcomes.push({ mutant, verdict });
      const by = verdict.by.length === 0 ? "" : `  [${verdict.by.join(" ")}]`;
      say(`${verdict.kind.padEnd(11)} ${wordsOf(mutant)}${by}`);
    }
  };
  await Promise.all(copies.map(work));

  const of = (kind: Verdict["kind"]): Mutant[] =>
    outcomes.filter(({ verdict }) => verdict.kind === kind).map(({ mutant }) => mutant);
  const [late, undecided, survivors] = [of("timed out").length, of("undecided").length, of("SURVIVED")];
  const decided = mutants.length - undecided;
  const noticed = decided - survivors.length;
  say(
    `\nnoticed ${noticed} of ${decided}: ${Math.round((100 * noticed) / Math.max(1, decided))} % (${late} of them timed out; ${undecided} undecided)`,
  );
  for (const survivor of survivors)
    say(`survived    ${wordsOf(survivor)}\n            ran ${survivor.tests.join(" ") || "no test"}`);
}

function wordsOf({ file, mutation, words }: Mutant): string {
  return `${file}:${mutation.line}  ${words}`;
}

/** The sample of all mutations of the folders that compile, in the order in which it was drawn. */
function drawMutants(): Mutant[] {
  const files = folders.flatMap((folder) => sourcesBelow(folder)).toSorted();
  const all = files.flatMap((file) => {
    const text = readFileSync(join(REPOSITORY, file), "utf8");
    return mutationsOf(text).map((mutation) => ({ file, text, mutation }));
  });
  const nearby = openNearby(REPOSITORY);
  const limit = Number(values.tests);
  const types = openTypeCheck(REPOSITORY);
  const drawn: Mutant[] = [];
  for (const { file, text, mutation } of sample(all, all.length, Number(values.seed))) {
    if (drawn.length === Number(values.sample)) break;
    if (!types.compiles(file, mutate(text, mutation))) continue;
    const whole = file.startsWith(DAEMON) ? [HISTORIES] : [];
    const tests = [...nearby.testsOf(file, limit), ...whole];
    drawn.push({ file, mutation, words: describeMutation(text, mutation), tests });
  }
  types.close();
  return drawn;
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

/** Runs the tests of a mutation, the nearest first. */
async function judge(copy: string, mutant: Mutant): Promise<Verdict> {
  let lateTries = 0;
  for (const part of partsOf(mutant.tests)) {
    for (;;) {
      const tests = part.filter((test) => sound.get(test) !== false);
      if (tests.length === 0) break;
      const run = await runMutated(copy, mutant, tests);
      if (run.failed.length === 0) break;
      if (run.isLate) {
        // On a machine that is busy the tests may take as long without it.
        const asIs = await runTests(copy, run.failed, limits);
        if (isSlower(run, asIs)) return { kind: "timed out", by: run.failed };
        if (++lateTries < LATE_TRIES) continue;
        if (asIs.failed.length === 0 || asIs.isLate) return { kind: "undecided", by: run.failed };
        for (const test of asIs.failed) leaveOut(test);
        continue;
      }
      // A test that fails without the mutation too has noticed nothing.
      for (const test of run.failed) await checkSound(copy, test);
      const by = run.failed.filter((test) => sound.get(test) === true);
      if (by.length > 0) return { kind: "noticed", by };
      if (run.failed.some((test) => !sound.has(test))) return { kind: "undecided", by: run.failed };
    }
  }
  return { kind: "SURVIVED", by: [] };
}

/** The nearest tests, then the others, then the long ones, each with the whole time limit to itself. */
function partsOf(tests: readonly string[]): readonly string[][] {
  const short = tests.filter((test) => !isLong(test));
  const long = tests.filter(isLong).map((test) => [test]);
  return [short.slice(0, FIRST_TESTS), short.slice(FIRST_TESTS), ...long];
}

/** Finds out whether a test passes without a mutation. One that only lacks time, however often it is tried, stays open. */
async function checkSound(copy: string, test: string): Promise<void> {
  for (let tries = 0; tries < LATE_TRIES && !sound.has(test); tries++) {
    const { failed, isLate } = await runTests(copy, [test], limits);
    if (failed.length === 0) sound.set(test, true);
    else if (!isLate) leaveOut(test);
  }
}

function leaveOut(test: string): void {
  sound.set(test, false);
  say(`left out    ${test} fails without a mutation`);
}

async function runMutated(copy: string, { file, mutation }: Mutant, tests: readonly string[]): Promise<Ran> {
  const path = join(copy, file);
  const text = readFileSync(path, "utf8");
  writeFileSync(path, mutate(text, mutation));
  try {
    return await runTests(copy, tests, limits);
  } finally {
    writeFileSync(path, text);
  }
}

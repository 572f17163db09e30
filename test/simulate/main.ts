import { spawn } from "node:child_process";
import { readdirSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import type { HoldKind } from "../../src/sync/ledger/sources/rows.ts";
import { MUTANTS, type Mutant } from "./mutants.ts";
import { worldsNamed } from "./worlds.ts";
import type { Order, Report } from "./worker.ts";

const WORKER = fileURLToPath(new URL("worker.ts", import.meta.url));
/** Most of what a simulation makes is dead at once: in a large nursery collecting it costs half as much. */
const NODE_FLAGS = [
  "--no-warnings",
  "--min-semi-space-size=64",
  "--max-semi-space-size=64",
  "--single-threaded-gc",
];
/** A seed takes a tenth of a second; a worker that reports nothing for so long is in an endless loop. */
const SILENCE_MS_MAX = 300_000;
/** A worker runs so many seeds before another takes its place: what it holds of past ones would slow it down. */
const BLOCK_SEEDS = 250;
const BLOCK_SEEDS_MIN = 50;
/** After so many failing seeds no more are run: the first ones show enough. */
const FAILURES_MAX = 5;
/** A mutant that so many seeds do not find is not found. */
const MUTANT_SEEDS_MAX = 2000;

const { values } = parseArgs({
  options: {
    seeds: { type: "string", default: "300" },
    from: { type: "string", default: "1" },
    seed: { type: "string" },
    /** Unkind worlds by name, with commas; `all`, or `none`. Default: those that are known to pass. */
    worlds: { type: "string" },
    replay: { type: "string" },
    workers: { type: "string", default: "2" },
    twice: { type: "boolean", default: false },
    mutants: { type: "boolean", default: false },
    mutant: { type: "string" },
  },
});

/** What every order says of the worlds. */
const inWorlds = values.worlds === undefined ? {} : { worlds: worldsNamed(values.worlds) };

const say = (text: string): void => {
  process.stdout.write(`${text}\n`);
};
const showProgress = (text: string): void => {
  if (process.stderr.isTTY) process.stderr.write(`\r${text}\u001B[K`);
};

/** A worker hung. */
class Silence extends Error {
  readonly seed: number;

  constructor(seed: number) {
    super(`seed ${seed} has not ended after ${SILENCE_MS_MAX / 1000} s`);
    this.seed = seed;
  }
}

/**
 * Runs a worker to its end; `onReport` may end it by giving false. Returns the last seed that it ran: after a daemon that never
 * rests it runs no more. Throws when it dies or is silent for too long.
 */
async function work(order: Order, onReport: (report: Report) => boolean): Promise<number> {
  const child = spawn(process.execPath, [...NODE_FLAGS, WORKER, JSON.stringify(order)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let last = order.from - 1;
  let silence: NodeJS.Timeout | undefined;
  let ended = false;
  let isSilent = false;
  const watch = (): void => {
    clearTimeout(silence);
    silence = setTimeout(() => {
      isSilent = true;
      child.kill("SIGKILL");
    }, SILENCE_MS_MAX);
  };
  watch();
  const exit = new Promise<number | null>((resolve) => {
    child.on("exit", (code) => resolve(code));
  });
  for await (const line of createInterface({ input: child.stdout })) {
    watch();
    const report = JSON.parse(line) as Report;
    if ("seed" in report) last = report.seed;
    if (!onReport(report)) {
      ended = true;
      child.kill();
      break;
    }
  }
  clearTimeout(silence);
  const code = await exit;
  if (isSilent) throw new Silence(last + 1);
  if (!ended && code !== 0) throw new Error(`the worker ended with ${String(code)} at seed ${last + 1}`);
  return last;
}

/** A file of a history, or all of a folder. */
function historiesAt(path: string): string[] {
  if (!statSync(path).isDirectory()) return [path];
  return readdirSync(path).map((name) => join(path, name));
}

/** Runs seeds in several processes. Returns how many ran and how many failed, and how often a source was held. */
async function runSeeds(
  from: number,
  count: number,
): Promise<{ done: number; failed: number; held: Record<HoldKind, number> }> {
  const workers = Math.max(1, Math.min(Number(values.workers), count));
  let done = 0;
  let failed = 0;
  const held = { lost: 0, unclear: 0, identity: 0 };
  const onReport = (report: Report): boolean => {
    if (report.kind === "line") say(report.text);
    if (report.kind === "passed")
      for (const kind of ["lost", "unclear", "identity"] as const) held[kind] += report.held[kind];
    if (report.kind === "failed") {
      failed += 1;
      showProgress("");
      say(`seed ${report.seed} failed: ${report.words.join("\n  ")}`);
    }
    if ("seed" in report) done += 1;
    showProgress(`${done} of ${count} seeds, ${failed} failed`);
    return !isOver();
  };
  let next = 0;
  // Smaller ones at the end keep all workers busy.
  const sizeOf = (left: number): number =>
    Math.min(left, BLOCK_SEEDS, Math.max(BLOCK_SEEDS_MIN, Math.ceil(left / workers / 2)));
  const isOver = (): boolean => failed >= FAILURES_MAX;
  const runBlocks = async (): Promise<void> => {
    while (next < count && !isOver()) {
      let seed = from + next;
      next += sizeOf(count - next);
      const end = from + next;
      while (seed < end && !isOver())
        seed =
          1 + (await work({ from: seed, count: end - seed, twice: values.twice, ...inWorlds }, onReport));
    }
  };
  await Promise.all(Array.from({ length: workers }, runBlocks));
  showProgress("");
  return { done, failed, held };
}

/** Histories that once found a bug, by name. */
const REPLAYS = fileURLToPath(new URL("replays", import.meta.url));

/** The recorded histories that pass without a deliberate bug: one that fails anyway finds none. */
async function passingReplays(): Promise<readonly string[]> {
  const replays = historiesAt(values.replay ?? REPLAYS);
  const passing: string[] = [];
  await work({ from: 0, count: replays.length, replays }, (report) => {
    if (report.kind === "passed") passing.push(replays[report.seed] ?? "");
    return true;
  });
  return passing;
}

/** Which of the recorded histories a deliberate bug fails at. */
async function replayThatFinds(mutant: string, replays: readonly string[]): Promise<string | undefined> {
  let found: string | undefined;
  await work({ from: 0, count: replays.length, mutant, replays, stopAtFailure: true }, (report) => {
    if (report.kind === "failed") found = basename(replays[report.seed] ?? "");
    return found === undefined;
  });
  return found;
}

interface FoundBy {
  readonly seed: number;
  readonly words: string;
}

/** The first of the seeds from one on that fails with a deliberate bug. */
async function firstFailure(
  mutant: string,
  from: number,
  chosen: Pick<Order, "worlds">,
): Promise<FoundBy | undefined> {
  let found: FoundBy | undefined;
  const count = MUTANT_SEEDS_MAX - from + 1;
  try {
    await work({ from, count, mutant, stopAtFailure: true, ...chosen }, (report) => {
      if (!("seed" in report)) return true;
      showProgress(`${mutant}: ${report.seed} seeds`);
      if (report.kind === "failed") found = { seed: report.seed, words: report.words.join(" ") };
      return found === undefined;
    });
  } catch (error) {
    // A daemon that works on for ever and never waits is found, too.
    if (!(error instanceof Silence)) throw error;
    found = { seed: error.seed, words: error.message };
  }
  return found;
}

async function passesWithout(seed: number, chosen: Pick<Order, "worlds">): Promise<boolean> {
  let passes = false;
  await work({ from: seed, count: 1, stopAtFailure: true, ...chosen }, (report) => {
    passes ||= report.kind === "passed";
    return true;
  });
  return passes;
}

/** Runs the recorded histories, then the seeds with one deliberate bug until it is found. */
async function findMutant({ name, does, worlds }: Mutant, replays: readonly string[]): Promise<boolean> {
  const replay = await replayThatFinds(name, replays);
  if (replay !== undefined) {
    say(`${name} (${does}): found by the recorded history ${replay}`);
    return true;
  }
  const chosen = { ...(worlds && { worlds }), ...inWorlds };
  let found = await firstFailure(name, 1, chosen);
  // A seed that fails without the deliberate bug has not found that.
  while (found !== undefined && !(await passesWithout(found.seed, chosen)))
    found = await firstFailure(name, found.seed + 1, chosen);
  const seeds = found?.seed ?? MUTANT_SEEDS_MAX;
  showProgress("");
  say(
    `${name} (${does}): ${found === undefined ? `NOT FOUND after ${seeds} seeds` : `found by seed ${found.seed} after ${seeds} seeds: ${found.words.slice(0, 160)}`}`,
  );
  return found !== undefined;
}

if (values.mutants || values.mutant !== undefined) {
  const chosen = MUTANTS.filter(
    ({ name }) => values.mutant === undefined || values.mutant.split(",").includes(name),
  );
  if (chosen.length === 0) throw new Error(`no mutant ${values.mutant ?? ""}`);
  const replays = await passingReplays();
  let missed = 0;
  const waiting = [...chosen];
  const next = async (): Promise<void> => {
    for (let mutant = waiting.shift(); mutant !== undefined; mutant = waiting.shift()) {
      if (!(await findMutant(mutant, replays))) missed += 1;
    }
  };
  await Promise.all(Array.from({ length: Number(values.workers) }, next));
  say(`${chosen.length} mutants, ${missed} not found`);
  process.exitCode = missed === 0 ? 0 : 1;
} else if (values.seed !== undefined || values.replay !== undefined) {
  let failed = 0;
  const replays = values.replay === undefined ? undefined : historiesAt(values.replay);
  const verbose = replays === undefined || replays.length === 1;
  const chosen = replays === undefined ? {} : { replays };
  const count = replays?.length ?? 1;
  await work({ from: Number(values.seed ?? 0), count, verbose, ...chosen, ...inWorlds }, (report) => {
    if (report.kind === "line") say(report.text);
    if (report.kind === "failed") {
      failed += 1;
      say(`seed ${report.seed} failed: ${report.words.join("\n  ")}`);
    }
    return true;
  });
  if (!verbose) say(`${count} histories, ${failed} failed`);
  process.exitCode = failed === 0 ? 0 : 1;
} else {
  const { done, failed, held } = await runSeeds(Number(values.from), Number(values.seeds));
  say(`holds: ${held.lost} of losses, ${held.unclear} of unclear lists, ${held.identity} of whose documents`);
  say(`${done} seeds, ${failed} failed`);
  process.exitCode = failed === 0 ? 0 : 1;
}

import type { Finding } from "../../src/wire/daemon-audit.ts";
import type { HoldKind } from "../../src/sync/ledger/sources/rows.ts";
import { SECOND, type Happening, type History } from "./history.ts";
import { PAGE_RESOURCES } from "./tuning.ts";
import { realTurn } from "./virtual/globals.ts";
import { hashOf } from "./virtual/random.ts";
import type { Failure } from "./world/judge.ts";
import type { Expected } from "./world/expected.ts";
import { askForStatus } from "./world/honesty.ts";
import { askToWait } from "./world/waits.ts";
import { holdsOf, wordsOf } from "./world/runner.ts";
import { approve, happen, hiddenAtFirst, isForPerson, openWorld, type World } from "./world/world.ts";

/** What a simulation came to. */
export interface Outcome {
  readonly failure: Failure | undefined;
  /** Stands for everything that happened, in its order. */
  readonly trace: string;
  readonly requests: number;
  /** How often a source was held before its list was compared with it, by the reason. */
  readonly held: Readonly<Record<HoldKind, number>>;
}

const MINUTE_MS = 60_000;
/** When, after the storm, agreement is checked; the last is the bound: two parks of an hour and a rescan. */
const CHECKS_AFTER_MS = [1, 2, 4, 8, 16, 32, 64, 96, 128, 190].map((minutes) => minutes * MINUTE_MS);
/** Once the storm is over the status is asked for so long. */
const ASKED_MS = 10 * MINUTE_MS;
/** What happens to mounts is noticed so soon, long before a rescan: retries of a halted source included. */
const NOTICED_MS = 2 * MINUTE_MS;
/** For so long everything must stay as it is once it agrees: later than the last check for extra resources. */
const STAY_MS = 65 * MINUTE_MS;
/** Requests of one audit, beside the further pages of a list. */
const RESTING_REQUESTS_MAX = 12;
const SOURCES_MAX = 2;
/** More files than a person's list shows are in no history. */
const FILES_MAX = 1000;

/** PDFs and links that may be there at once: the service works on each after its answer, and concurrency counts them. */
const ADDRESSED_FILES = 15;

/** Runs a history to its end. One at a time. `report` gets every line of the trace. */
export async function simulate(
  history: History,
  report: (line: string) => void = () => undefined,
): Promise<Outcome> {
  let hash = 0;
  const world = openWorld(history, (line) => {
    hash = hashOf(line, hash);
    report(line);
  });
  const { judge, machine, stage } = world;
  const onRejection = (error: unknown): void => {
    if (stage.process.alive) judge.fail("unhandled", `a rejection that nobody handles: ${wordsOf(error)}`);
  };
  process.on("unhandledRejection", onRejection);
  try {
    await storm(world, history);
    if (await agree(world, history)) await rest(world, history);
  } finally {
    machine.kill(stage.process, "all");
    // The dead process goes as far as it can before the next simulation is on the stage.
    await realTurn();
    process.off("unhandledRejection", onRejection);
    machine.close();
  }
  return {
    failure: judge.failure(),
    trace: (hash >>> 0).toString(16).padStart(8, "0"),
    requests: judge.requests(),
    held: judge.heldCounts(),
  };
}

/** Lets everything of the history happen. */
async function storm(world: World, history: History): Promise<void> {
  const { conditions, happenings } = history;
  const { clock, runner, network, judge, note } = world;
  // That the service begins to take metadata is part of the history.
  const overMs =
    happenings.reduce((end, each) => Math.max(end, endOf(each)), conditions.metadataFromMs ?? 0) + 1;
  runner.start(conditions.mode);
  askForQuick(world, history);
  askForStatus(world, history, overMs + ASKED_MS);
  askToWait(world, history, overMs + ASKED_MS);
  for (const happening of happenings) {
    const run = (): void => happen(world, happening);
    if (ON_DISK.has(happening.kind)) clock.onDisk(happening.atMs, run);
    else clock.at(happening.atMs, { alive: true }, run);
  }
  await pass(world, overMs);
  runner.spare();
  network.calm();
  note(() => "the storm is over");
  // No hint comes when a folder can be read again: that is found by the next scan.
  // A hostile service may hold the source until a person agrees.
  if (
    conditions.mounted !== true ||
    conditions.hostility !== undefined ||
    happenings.some(({ kind }) => kind === "spoil")
  )
    return;
  await pass(world, overMs + NOTICED_MS);
  // The folder that hid the source's is the source, as far as anybody knows.
  if (hiddenAtFirst(world.service, happenings).includes("")) return;
  // A delete that waits for a person is one that was noticed.
  const awaitsPerson =
    runner
      .running()
      ?.status()
      .sources.some(({ held }) => held > 0) === true;
  // That the service begins to take metadata is noticed later.
  const unnoticed = awaitsPerson ? judge.wrong(() => true) : judge.differences("metadata");
  if (unnoticed.length > 0) judge.fail("unnoticed", unnoticed.join("; "));
}

/** A source whose documents cost no time does not wait for another's. Each process begins with a queue of its own. */
function askForQuick({ clock, judge, stage }: World, { conditions }: History): void {
  const quickMs = conditions.slow?.quickMs;
  if (quickMs === undefined) return;
  let current = { process: stage.process, sinceMs: clock.nowMs() };
  const ask = (): void => {
    if (current.process !== stage.process) current = { process: stage.process, sinceMs: clock.nowMs() };
    const isQuick = ({ path, changedMs }: Expected): boolean =>
      path.startsWith(SECOND) && clock.nowMs() - Math.max(changedMs, current.sinceMs) > quickMs;
    const wrong = judge.wrong(isQuick);
    if (wrong.length > 0) judge.fail("starved", `another source's files are waited for: ${wrong.join("; ")}`);
    clock.at(clock.nowMs() + 1000, { alive: true }, ask);
  };
  ask();
}

/**
 * Folder and service come to agree within a bounded time, with a person's help where it is asked for, and stay so. Returns false
 * where the lists of a service decide nothing.
 */
async function agree(world: World, history: History): Promise<boolean> {
  const { clock, network, runner, judge, stage } = world;
  const overMs = clock.nowMs();
  // A create and an update of each file.
  const slowMs = 2 * slowWorkMs(world, history);
  let agreed = false;
  for (const checkMs of CHECKS_AFTER_MS) {
    await help(world, history);
    await pass(world, overMs + checkMs + slowMs);
    const status = runner.running()?.status();
    // What a person has not agreed to yet would be held again after a restart.
    const awaitsPerson =
      history.conditions.hostility !== undefined && status?.sources.some(isForPerson) === true;
    const isQuiet = network.isQuiet() && status?.idle === true && !awaitsPerson;
    agreed = judge.differences().length === 0 && isQuiet;
    if (agreed || judge.failure() !== undefined) break;
  }
  // A list that stays incomplete decides nothing: source or file is held, and no file has two resources.
  const isUndecided =
    history.conditions.hostility?.listMax !== undefined &&
    (holdsOf(stage.process).includes("unclear") ||
      runner
        .running()
        ?.files({ limit: FILES_MAX })
        .some(({ code }) => code === "list_incomplete") === true);
  if (isUndecided) {
    await pass(world, clock.nowMs() + STAY_MS);
    const doubled = judge.doubled();
    if (doubled.length > 0) judge.fail("doubled", `these have two resources: ${doubled.join(", ")}`);
    return false;
  }
  if (!agreed) {
    const status = JSON.stringify(runner.running()?.status());
    judge.fail(
      "disagreement",
      `folder and service do not agree: ${judge.differences().join("; ") || `the daemon works on: ${status}`}`,
    );
  }
  await pass(world, clock.nowMs() + STAY_MS);
  const later = judge.differences();
  const exchanged = judge.exchanged();
  if (exchanged.length > 0) judge.fail("exchanged", exchanged.join("; "));
  if (later.length > 0) judge.fail("unstable", `they agreed and do not any more: ${later.join("; ")}`);
  // Lists have been right for longer than a held source waits for the next one.
  if (holdsOf(stage.process).includes("unclear") && history.conditions.hostility?.listMax === undefined)
    judge.fail("held", "the source is held for its lists, which have been right for an hour");
  return true;
}

/** A person has what failed tried again, ends pauses, agrees to what is held, and compares where the service itself lost something. */
async function help(world: World, { conditions, happenings }: History): Promise<void> {
  const { runner, judge, note } = world;
  const noteFinding = ({ source, path, docId, repaired }: Finding): void => {
    if (!repaired) judge.reported(source, path, docId);
  };
  judge.changed();
  const daemon = runner.running();
  const troubles = (error: unknown): void => note(() => `a person sees: ${String(error)}`);
  judge.retried();
  daemon?.retry().catch(troubles);
  // An old ledger says that the daemon is paused, of a time when it was.
  if (daemon?.status().sources.some(({ paused }) => paused) === true) daemon.resume().catch(troubles);
  if (conditions.hostility?.puts === "ignored" || happenings.some(isBehindTheBack))
    daemon?.audit({ repair: true }).then((report) => report.findings.forEach(noteFinding), troubles);
  for (const { source, path, docId, state, code } of daemon?.files({ limit: FILES_MAX }) ?? [])
    if (state === "failed" || code === "earlier_text" || code === "list_incomplete")
      judge.reported(source, path, docId);
  approve(world);
  await Promise.resolve();
}

/** Running again sends nothing. */
async function rest(world: World, history: History): Promise<void> {
  const { conditions } = history;
  const { clock, runner, judge, expectations } = world;
  runner.stop(1000, "run");
  // Changed settings make it replace every resource first, and creates of that may be in doubt.
  const addressedMs = (conditions.workMs ?? 0) * Math.ceil(ADDRESSED_FILES / conditions.concurrency);
  await pass(world, clock.nowMs() + STAY_MS + addressedMs + slowWorkMs(world, history));
  const [requests, changes] = [judge.requests(), judge.changes()];
  // Where audits are frequent, one is among it. A new process repeats once what the service lost twice before.
  await pass(
    world,
    clock.nowMs() +
      (conditions.auditHours === 1 && conditions.hostility === undefined ? STAY_MS : 10 * MINUTE_MS),
  );
  const sent = judge.requests() - requests;
  const furtherPages = conditions.pages ? Math.floor(expectations.all().length / PAGE_RESOURCES) : 0;
  const resting = RESTING_REQUESTS_MAX * (conditions.second === undefined ? 1 : SOURCES_MAX) + furtherPages;
  // An audit lists. It sends nothing else.
  if (judge.changes() > changes || sent > resting) {
    judge.fail("restless", `${sent} requests after a restart, with nothing to be done`);
  }
  const later = judge.differences();
  if (later.length > 0) judge.fail("unstable", later.join("; "));
  runner.stop(60 * MINUTE_MS, "run");
  await pass(world, clock.nowMs() + 15_000);
}

/** The longest that a slow service works on all files once; 0 for one that is not slow. */
function slowWorkMs({ expectations }: World, { conditions: { concurrency, slow } }: History): number {
  if (slow === undefined) return 0;
  return slow.eachMs * Math.ceil(expectations.all().length / Math.min(concurrency, slow.atOnce));
}

/** Lets time pass, in steps, until it is over or something failed. */
async function pass({ clock, stage, runner, judge }: World, untilMs: number): Promise<void> {
  while (judge.failure() === undefined && clock.nowMs() < untilMs) {
    const stepMs = Math.min(untilMs, clock.nowMs() + MINUTE_MS);
    await clock.run(stepMs, (owner) => owner !== stage.process || runner.survives());
    judge.holds(holdsOf(stage.process));
  }
}

/** What nobody can notice who only sends: the service lost something, or an update acted after a newer one. */
function isBehindTheBack(happening: Happening): boolean {
  if (["reset", "restore", "page"].includes(happening.kind)) return true;
  if (happening.kind !== "fault" || happening.fault !== "acts-late") return false;
  return happening.operation === "update" || happening.operation === "any";
}

/** Happenings that others do to the disk, at whatever the daemon is just doing. */
const ON_DISK: ReadonlySet<Happening["kind"]> = new Set([
  "write",
  "append",
  "rewrite",
  "rename",
  "swap",
  "copy",
  "remove",
  "touch",
  "spoil",
  "root",
  "mount",
]);

function endOf(happening: Happening): number {
  const forMs = "forMs" in happening ? happening.forMs : 0;
  const inTurnMs = happening.kind === "remove" ? happening.paths.length * (happening.everyMs ?? 0) : 0;
  return happening.atMs + forMs + inTurnMs;
}

import type { FolderWarning } from "../../wire/daemon-status.ts";
import type { ActionContext } from "../actions/context.ts";
import type { Agenda } from "../agenda/agenda.ts";
import type { Due } from "../agenda/checks.ts";
import type { PassPlan, Passes } from "../pass/pass.ts";
import type { Candidate, RelativePath } from "../plan/model.ts";
import { scopeTest } from "../plan/scope.ts";
import type { Contact } from "../identity/contact.ts";
import type { Rules } from "../rules/rules.ts";
import { openIgnoreWarnings } from "./ignore-warnings.ts";
import { openMountWarnings } from "./mount-warnings.ts";
import type { SourceDeletes } from "./source-deletes.ts";

/** The loop of a source: has a pass compare what is due, and begins what the pass found. */
export interface Checking {
  /** Runs until the source is stopped. */
  run(): Promise<void>;
  /** Checks the whole source, to find changes without an event. */
  rescan(): void;
  isPassing(): boolean;
  /** Reports whether the last check compared nothing because the source is halted. Until the next one, work may be unknown. */
  isHalted(): boolean;
  /** Reports whether the whole source was checked in this run. Before that, nobody knows whether it is idle. */
  isPlanned(): boolean;
  /** Problems of ignore files that the last checks met. */
  ignoreProblems(): readonly FolderWarning[];
  /** Since when files wait until the scope at the service is listed; undefined: none does. */
  adoptingSinceMs(): number | undefined;
}

/** Puts files into the queue. `isRecent`: the file was changed a moment ago. All others are backlog. */
export type BeginFiles = (
  candidates: readonly Candidate[],
  isRecent: (candidate: Candidate) => boolean,
) => void;

export interface CheckingOptions {
  readonly row: { readonly id: number };
  readonly rules: Rules;
  readonly context: Pick<ActionContext, "ledger" | "now" | "moved">;
  readonly agenda: Agenda;
  readonly passes: Passes;
  readonly contact: Contact;
  readonly deletes: SourceDeletes;
  readonly once: boolean;
  readonly isPaused: () => boolean;
  readonly begin: BeginFiles;
  readonly onUnwatched: () => void;
  readonly onWarning: (error: Error) => void;
  readonly onRescanned?: (ms: number) => void;
  readonly onChange: () => void;
  readonly stopped: AbortSignal;
}

/** How soon a folder that is missing or another one is checked again. */
const ROOT_RETRY_MS = 10_000;
/** The point of a mount or unmount is checked once more after this: it may be gone before an event arrives. */
const MOUNT_AGAIN_MS = 2000;

/** Opens the loop of a source. */
export function openChecking(options: CheckingOptions): Checking {
  const { row, rules, agenda, passes, contact, deletes, once, isPaused } = options;
  const { ledger, now, moved } = options.context;
  const { states } = agenda;
  const warnOfMounts = openMountWarnings(rules, options.onWarning);
  const ignoreWarnings = openIgnoreWarnings(rules, options.onWarning);
  let passing = false;
  let planned = false;
  let adoptingSinceMs: number | undefined;
  let isHalted = false;
  /** The last check found the folder missing or another one. Its watcher may watch nothing any more. */
  let isRootLost = false;
  /** Time of day at which the last check of the whole source began. */
  let scannedMs: number | undefined;
  /** A periodic rescan is due that no event caused. */
  let periodic = false;

  /** Reports whether a scan met an ignore file that must settle first. Then the whole source is checked again. */
  const awaitsIgnoreFile = (): boolean => {
    const rest = rules.takeIgnoreRest();
    if (rest !== undefined) agenda.awaitIgnoreFile(rest);
    return rest?.isOverdue === false;
  };
  /** Paths that were not compared are not at rest before the check that follows. */
  const awaitCheck = (paths: Iterable<RelativePath>, atMs: number): void => {
    for (const path of paths) if (!states.hasJob(path)) agenda.checkAgain(path, atMs);
  };
  const passPaused = async (due: Due, answers: number): Promise<void> => {
    states.forgetMissing();
    const { candidates, gone, inScope } = await passes.unsent(due);
    // It is running already. The check that came with the resume finds all of it again, and answers.
    if (!isPaused()) return;
    states.notePaused(candidates, gone, inScope);
    isHalted = false;
    if (due.all) planned = true;
    if (!awaitsIgnoreFile()) agenda.answer(answers);
  };
  /** The comparison with the service lets nothing pass. */
  const passHeld = (due: Due, answers: number): void => {
    const open = new Set([...due.paths, ...states.missing().keys()]);
    states.forgetMissing();
    // Until the list has shown whether something is lost, nobody knows what must be sent.
    isHalted = ledger.contacts.loss(row.id) !== undefined;
    if (isHalted) {
      planned ||= due.all;
      agenda.answer(answers);
    }
    const againMs = contact.nextCheckMs();
    agenda.scanAt(againMs);
    awaitCheck(open, againMs);
  };
  /** Begins what a pass found that began at `startMs`, by the time of day at `wallMs`. */
  const begin = async (
    plan: PassPlan,
    due: Due,
    answers: number,
    { startMs, wallMs }: { readonly startMs: number; readonly wallMs: number },
  ): Promise<void> => {
    warnOfMounts(rules.mounts?.closed() ?? []);
    for (const path of rules.mounts?.takeMoved() ?? []) agenda.checkAgain(path, now() + MOUNT_AGAIN_MS);
    ignoreWarnings.update(due.all);
    if (plan.newRoot) contact.suspect();
    const isAwaiting = awaitsIgnoreFile();
    const admitted = contact.admit(plan.candidates, due.all);
    isHalted = false;
    options.begin(admitted, recentTest(due, scannedMs));
    if (due.all) scannedMs = wallMs;
    const isAdopting = contact.waiting().size > 0;
    adoptingSinceMs = isAdopting ? (adoptingSinceMs ?? startMs) : undefined;
    deletes.begin(plan.deletions);
    if (due.all) deletes.beginLeft();
    // Only now is all pending work counted.
    if (due.all && !isAwaiting) planned = true;
    if (isRootLost || (plan.newFiles && periodic && due.all)) options.onUnwatched();
    isRootLost = false;
    if (due.all) periodic = false;
    if (isAdopting || isAwaiting) {
      // A path that was not admitted returns with another check.
      const againMs = states.nextDueMs();
      if (againMs !== undefined) awaitCheck(due.paths, againMs);
      return;
    }
    agenda.answer(answers);
  };
  const pass = async (): Promise<void> => {
    const due = states.take(now());
    if (due === undefined) return;
    const answers = agenda.asked();
    if (isPaused()) {
      await passPaused(due, answers);
      return;
    }
    if (!(await contact.ready())) {
      passHeld(due, answers);
      return;
    }
    const startMs = now();
    const wallMs = Date.now();
    const plan = await passes.plan(due);
    if (due.all) options.onRescanned?.(now() - startMs);
    if (!plan.halted) {
      await begin(plan, due, answers, { startMs, wallMs });
      return;
    }
    if (!once) agenda.scanAt(now() + ROOT_RETRY_MS);
    isHalted = true;
    isRootLost = true;
    planned ||= due.all;
    agenda.answer(answers);
  };

  return {
    run: async () => {
      while (!options.stopped.aborted) {
        const nextMs = states.nextDueMs();
        if (nextMs !== undefined && nextMs <= now()) {
          passing = true;
          await pass();
          passing = false;
          states.endPass();
          deletes.beginPutOff();
          moved();
          continue;
        }
        if (nextMs !== undefined) agenda.wakeAt(nextMs);
        deletes.beginDue();
        options.onChange();
        await agenda.time();
      }
    },
    rescan: () => {
      periodic = true;
      agenda.hint(undefined);
    },
    isPassing: () => passing,
    ignoreProblems: () => ignoreWarnings.current(),
    isHalted: () => isHalted,
    isPlanned: () => planned,
    adoptingSinceMs: () => adoptingSinceMs,
  };
}

/** Steps of the coarsest file times. */
const FILE_TIME_MS = 2000;

/**
 * Returns a test for whether a file was changed a moment ago: something happened at its path, it has a row, or it has
 * changed since the check of the whole source before this one. New files of the first check are backlog.
 */
function recentTest(due: Due, scannedMs: number | undefined): (candidate: Candidate) => boolean {
  const isMarked = scopeTest(due.paths);
  return ({ entry: { path, ctimeMs }, known }) =>
    known !== undefined ||
    isMarked(path) ||
    (due.all && scannedMs !== undefined && ctimeMs >= scannedMs - FILE_TIME_MS);
}

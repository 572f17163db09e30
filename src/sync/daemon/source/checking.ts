import type { Due } from "../agenda/checks.ts";
import { type PassPlan, runPass } from "../pass/pass.ts";
import { findUnsent } from "../pass/preview.ts";
import type { Candidate, RelativePath } from "../../plan/model.ts";
import { scopeTest } from "../../plan/scope.ts";
import type { SourceParts } from "./parts.ts";
import { noteBacklog } from "./progress.ts";

/** How soon a folder that is missing or another one is checked again. */
const ROOT_RETRY_MS = 10_000;
/** The point of a mount or unmount is checked once more after this: it may be gone before an event arrives. */
const MOUNT_AGAIN_MS = 2000;

/** The loop of a source: has a pass compare what is due, and begins what the pass found. Runs until it is stopped. */
export async function runChecks(parts: SourceParts): Promise<void> {
  const { options, agenda, deletes, state, signal } = parts;
  const { now, moved } = parts.context;
  while (!signal.aborted) {
    const nextMs = agenda.nextDueMs();
    if (nextMs !== undefined && nextMs <= now()) {
      state.isPassing = true;
      await check(parts);
      state.isPassing = false;
      agenda.endPass();
      deletes.beginPutOff();
      moved();
      continue;
    }
    if (nextMs !== undefined) agenda.wakeAt(nextMs);
    deletes.beginDue();
    options.onChange();
    await agenda.time();
  }
}

/** Checks what is due. */
async function check(parts: SourceParts): Promise<void> {
  const { options, context, agenda, contact, state } = parts;
  const { now } = context;
  const due = agenda.take();
  if (due === undefined) return;
  const answers = agenda.asked();
  if (state.isPaused) {
    await checkPaused(parts, due, answers);
    return;
  }
  if (!(await contact.ready())) {
    putOff(parts, due, answers);
    return;
  }
  const startMs = now();
  const wallMs = Date.now();
  const plan = await runPass(parts.passes, due);
  if (due.all) options.onRescanned?.(now() - startMs);
  if (!plan.halted) {
    begin(parts, plan, due, answers, wallMs);
    return;
  }
  if (!options.once) agenda.scanAt(now() + ROOT_RETRY_MS);
  state.isHalted = true;
  state.isRootLost = true;
  state.isPlanned ||= due.all;
  agenda.answer(answers);
}

/** Finds what would be sent if the source were not paused, so that it is counted. Its jobs wait for the resume, which ends them. */
async function checkPaused(parts: SourceParts, due: Due, answers: number): Promise<void> {
  const { agenda, passes, state } = parts;
  const { candidates, gone, inScope } = await findUnsent(passes, due);
  // It is running already. The check that came with the resume finds all of it again, and answers.
  if (!state.isPaused) return;
  for (const path of agenda.missing().keys()) if (inScope(path)) agenda.decide(path);
  for (const { path, id } of gone) agenda.miss(path, id);
  agenda.queue(candidates);
  state.isHalted = false;
  if (due.all) state.isPlanned = true;
  if (!awaitsIgnoreFile(parts)) agenda.answer(answers);
}

/** Checks later: the comparison with the service lets nothing pass. */
function putOff(parts: SourceParts, due: Due, answers: number): void {
  const { context, agenda, contact, state } = parts;
  const open = new Set([...due.paths, ...agenda.missing().keys()]);
  agenda.forgetMissing();
  // Until the list has shown whether something is lost, nobody knows what must be sent.
  state.isHalted = context.ledger.contacts.loss(parts.id) !== undefined;
  if (state.isHalted) {
    state.isPlanned ||= due.all;
    agenda.answer(answers);
  }
  const againMs = contact.nextCheckMs();
  agenda.scanAt(againMs);
  awaitCheck(parts, open, againMs);
}

/** Begins what a pass found that began at `wallMs`, by the time of day. */
function begin(parts: SourceParts, plan: PassPlan, due: Due, answers: number, wallMs: number): void {
  const { options, context, agenda, contact, deletes, state } = parts;
  const { mounts } = options.rules;
  for (const path of mounts?.takeMoved() ?? []) agenda.checkAgain(path, context.now() + MOUNT_AGAIN_MS);
  parts.problems.update(due.all);
  if (plan.newRoot) contact.suspect();
  const isAwaiting = awaitsIgnoreFile(parts);
  const admitted = contact.admit(plan.candidates, due.all);
  state.isHalted = false;
  beginFiles(parts, admitted, recentTest(due, state.scannedMs));
  if (due.all) state.scannedMs = wallMs;
  const isProbing = contact.waiting().size > 0;
  deletes.begin(plan.deletions);
  if (due.all) deletes.beginLeft();
  // Only now is all pending work counted.
  if (due.all && !isAwaiting) state.isPlanned = true;
  if (state.isRootLost || (plan.newFiles && state.isPeriodic && due.all)) options.onUnwatched();
  state.isRootLost = false;
  if (due.all) state.isPeriodic = false;
  if (isProbing || isAwaiting) {
    // A path that was not admitted returns with another check.
    const againMs = agenda.nextDueMs();
    if (againMs !== undefined) awaitCheck(parts, due.paths, againMs);
    state.isWholeOpen ||= due.all;
    return;
  }
  if (state.isWholeOpen && !due.all) {
    agenda.scanAt(context.now());
    return;
  }
  state.isWholeOpen = false;
  agenda.answer(answers);
}

/** Puts files into the queue. Those that were changed a moment ago go first; all others are backlog. */
function beginFiles(
  parts: SourceParts,
  candidates: readonly Candidate[],
  isRecent: (candidate: Candidate) => boolean,
): void {
  const { options, context, agenda } = parts;
  agenda.queue(candidates);
  // Before any of them is acknowledged; otherwise the ledger would show other processes an agreement too early.
  if (candidates.length > 0) context.ledger.noteLast(parts.id, () => noteBacklog(parts));
  for (const recent of [true, false]) {
    const some = candidates.filter((candidate) => isRecent(candidate) === recent);
    options.queue.push(
      some.map((candidate) => ({ kind: "file", source: parts, candidate })),
      { recent },
    );
  }
}

/** Reports whether a scan met an ignore file that must settle first. Then the whole source is checked again. */
function awaitsIgnoreFile({ options, agenda }: SourceParts): boolean {
  const rest = options.rules.takeIgnoreRest();
  if (rest !== undefined) agenda.awaitIgnoreFile(rest);
  return rest?.isOverdue === false;
}

/** Paths that were not compared are not at rest before the check that follows. */
function awaitCheck({ agenda }: SourceParts, paths: Iterable<RelativePath>, atMs: number): void {
  for (const path of paths) if (!agenda.hasJob(path)) agenda.checkAgain(path, atMs);
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

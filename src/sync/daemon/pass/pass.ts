import type { LeftOut } from "../../../wire/daemon-folders.ts";
import type { Due } from "../agenda/checks.ts";
import type { BusyPaths } from "../agenda/jobs.ts";
import type { Deletion } from "../../ledger/intents/deletes.ts";
import type { SourceRow } from "../../ledger/sources/rows.ts";
import { brake, isSameRoot, losesAll, mayHold } from "../../plan/brakes.ts";
import { fileTag } from "../../plan/marker.ts";
import type { Candidate, Difference, RelativePath, RootIdentity, Scan } from "../../plan/model.ts";
import { scopeTest } from "../../plan/scope.ts";
import { absentName } from "../../plan/versions.ts";
import { UNSETTLED } from "../../scan/rules/ignore-reader.ts";
import { scanSource } from "../../scan/scan.ts";
import { applyDifference, isNewlyGone } from "./applying.ts";
import { brakeFacts, isAgreed, limitFacts, rootless, type RootHalt } from "./brake-facts.ts";
import { isBurstOver, missingWith, ripeOf } from "./burst.ts";
import { compareJudged } from "./compare.ts";
import { type PassContext, scanOptions, withBusy } from "./context.ts";
import { beginDeletes, haltSource, holdRows } from "./deletes.ts";
import { scanDue } from "./due-scan.ts";

/** The work that a pass found. */
export interface PassPlan {
  readonly candidates: readonly Candidate[];
  readonly deletions: readonly Deletion[];
  /** The folder is missing or another one, so nothing may be done: check again later. */
  readonly halted: boolean;
  /** There are files without a row. */
  readonly newFiles: boolean;
  /** The folder is another one than before: its files may have resources that no row knows. */
  readonly newRoot: boolean;
}

/** The passes of a source, which compare its disk with its ledger, and what one of them leaves to the next. */
export interface Passes extends PassContext {
  readonly memory: {
    /** No pass has compared the whole source. */
    isFirst: boolean;
    /** The last pass was halted because of its root. */
    wasHalted: boolean;
    /** The folder that a whole pass let through although it is not the agreed one: deletes are held because of it. */
    judgedRoot: Scan["root"];
    /** What the rules left out of the last whole scan, by rule. */
    leftOut: readonly LeftOut[];
    /** Where the last checks met something unreadable; undefined before the first check of the whole source. */
    unreadable: ReadonlySet<RelativePath> | undefined;
  };
}

/** Opens the passes of a source. */
export function openPasses(context: PassContext): Passes {
  const rest = { judgedRoot: undefined, leftOut: [], unreadable: undefined };
  return { ...context, memory: { isFirst: true, wasHalted: false, ...rest } };
}

/**
 * Scans what is due, writes moves, holds and delete intents to the ledger, and returns what must be read and sent. Passes
 * must not overlap.
 */
export async function runPass(passes: Passes, due: Due): Promise<PassPlan> {
  return withBusy(passes.agenda, (busy) => passWith(passes, due, busy));
}

async function passWith(passes: Passes, due: Due, busy: BusyPaths): Promise<PassPlan> {
  const { source, agenda, memory } = passes;
  const isOver = isBurstOver(passes);
  // Files in flight count as well: their own jobs may find them missing minutes apart.
  const inFlight = isOver ? [...busy.known()] : [];
  const found = await scanAndCompare(passes, due, busy, { inFlight, isOver });
  const { scan } = found;
  if (found.difference === undefined || scan.root === undefined)
    return halt(passes, rootless(scan, source.rules), undefined, 0);
  const { difference, before, missing, whole, isAnother } = found;
  const facts = await brakeFacts(passes, scan, before, difference);
  const judged = brake(scan, difference.gone, facts);
  if (judged.halted) return halt(passes, { reason: judged.reason }, scan.root, judged.held.length);
  memory.wasHalted = false;
  if (whole) memory.judgedRoot = scan.root;
  memory.leftOut = scan.leftOut ?? memory.leftOut;

  const { candidates, gone } = await applyDifference(passes, difference, busy, missing);
  const decided = brake(scan, gone, facts);
  // An approval holds for this check. A second one would find it used up, and the limits would hold what was agreed to.
  const isApproved = isAgreed(facts, scan);
  const braked = isApproved
    ? decided
    : ripeOf(passes, decided, scan, {
        quiet: agenda.isQuiet({ butMissing: true }),
        isBurstOver: isOver,
        missingBusy: facts.missingBusy,
      });
  if (isApproved) agenda.forgetMissing();
  const deletions = await beginDeletes(passes, braked);
  holdRows(passes, braked);
  const isHolding = decided.held.length > 0 && !facts.keeps;
  const unreadable = countUnreadable(passes, scan);
  const mayAgree = whole && !isHolding && (before.root === undefined || facts.hidden === 0);
  await notePass(passes, scan.root, { before, whole, isAnother, mayAgree, unreadable });
  if (whole) memory.isFirst = false;
  const newFiles = candidates.some(({ known }) => known === undefined);
  return { candidates, deletions, halted: false, newFiles, newRoot: isAnother };
}

function halt(passes: Passes, why: RootHalt, root: RootIdentity | undefined, files: number): PassPlan {
  passes.memory.wasHalted = true;
  passes.agenda.forgetMissing();
  haltSource(passes, why, root, files);
  return { candidates: [], deletions: [], halted: true, newFiles: false, newRoot: false };
}

/** The scan of a pass and its comparison, of which there is none if the root has no identity. */
type Found =
  | { readonly scan: Scan; readonly difference?: undefined }
  | {
      readonly scan: Scan;
      readonly difference: Difference;
      readonly whole: boolean;
      /** The source's row before the pass. */
      readonly before: SourceRow;
      /** Ids of the rows whose file the first scan did not find. */
      readonly missing: ReadonlySet<number>;
      /** The root is another folder than before. */
      readonly isAnother: boolean;
    };

/** Scans what is due and compares it with the ledger; then the whole source, where only that shows what happened. */
async function scanAndCompare(
  passes: Passes,
  due: Due,
  busy: BusyPaths,
  { inFlight, isOver }: { readonly inFlight: readonly RelativePath[]; readonly isOver: boolean },
): Promise<Found> {
  const { source, context, memory, once } = passes;
  const when = { inFlight, isBurstOver: isOver, wasHalted: memory.wasHalted };
  const { scan: first, whole } = await scanDue(passes, due, when);
  if (first.root === undefined) return { scan: first };
  await placeAbsent(passes, first);
  const { scan, difference } = await compareJudged(passes, first, busy, memory.isFirst || !whole);
  const before = context.ledger.sources.get(source.id);
  const newlyGone = difference.gone.filter(isNewlyGone);
  const missing = new Set(newlyGone.map((row) => row.id));
  // A single scan may miss a file that moves while it runs. Only a whole one shows that a folder was emptied, how much of
  // it another root holds, or that files in flight are gone rather than renamed.
  const mayBeEmpty = (): boolean => {
    const facts = limitFacts(passes, before, difference);
    const { missingBusy } = difference;
    return (
      // A partial check sees only held rows in its part.
      losesAll(missingWith(passes, newlyGone) + before.held + missingBusy, facts) ||
      (missingBusy > 0 && mayHold(difference.gone, facts)) ||
      !isSameRoot(scan.root, before.root)
    );
  };
  // Another folder is judged as a whole before anything of it is sent. Otherwise its first file would count as an
  // agreement.
  const isAnother = ![before.root ?? scan.root, memory.judgedRoot].some((known) =>
    isSameRoot(known, scan.root),
  );
  const facts = { before, missing, isAnother };
  if ((whole || !isAnother) && (missing.size === 0 || (!once && (whole || !mayBeEmpty()))))
    return { scan, difference, whole, ...facts };
  const second = await scanSource(source.root, source.rules, scanOptions(passes, true));
  if (second.root === undefined) return { scan: second };
  return { ...(await compareJudged(passes, second, busy, memory.isFirst)), whole: true, ...facts };
}

/** Gives resources whose file was not there when a list showed them to the files that have appeared since. */
async function placeAbsent({ source, context: { ledger } }: PassContext, scan: Scan): Promise<void> {
  ledger.flush();
  const absent = ledger.files.absent(source.id);
  if (absent.size === 0) return;
  const found = scan.entries.flatMap(({ path }) => {
    const id = absent.get(fileTag(path));
    if (id === undefined || ledger.files.living(source.id, path) !== undefined) return [];
    // It may have gone since, and another row may have its id.
    const row = ledger.files.get(id);
    const isAbsent = row !== undefined && row.path === absentName(row.title, row.docId ?? "");
    return isAbsent ? [{ id, to: path }] : [];
  });
  if (found.length > 0) await ledger.write(() => ledger.files.repath(found));
}

/** Records what a pass found out about the source. `identity` is the root's. */
async function notePass(
  { source: { id, rules }, context: { ledger } }: PassContext,
  identity: NonNullable<Scan["root"]>,
  pass: {
    readonly before: SourceRow;
    readonly whole: boolean;
    /** The root is another folder than before. */
    readonly isAnother: boolean;
    /** The root becomes the agreed one. Not while deletes are held because of another one, or while files may be hidden. */
    readonly mayAgree: boolean;
    /** How many paths are unreadable. */
    readonly unreadable: number;
  },
): Promise<void> {
  const { before, whole, isAnother, mayAgree, unreadable } = pass;
  // Also the same one under another device number: without a time of birth nothing else identifies it.
  const rootIsNew = before.root?.dev !== identity.dev || before.root.ino !== identity.ino;
  const settled = rules.takeSettled(whole);
  const mounts = rules.mounts?.takeNoted() ?? [];
  const record = (): void => {
    for (const file of settled) ledger.tree.setIgnoreFile(id, file);
    for (const mount of mounts) ledger.tree.setMount(id, mount);
    if (isAnother) ledger.contacts.distrust(id);
    if (mayAgree && rootIsNew) ledger.sources.setRoot(id, identity);
    if (unreadable !== before.unreadable) ledger.sources.setUnreadable(id, unreadable);
    if (whole && before.approved) ledger.sources.approvalUsed(id);
  };
  // A power loss must not leave an ignore file unknown: what it excludes would be sent while it is rewritten.
  if (settled.length > 0) await ledger.write(record);
  else ledger.note(record);
}

/** Returns how many paths are unreadable as of this scan. A part that is readable again no longer counts. */
function countUnreadable({ source, context, memory }: Passes, scan: Scan): number {
  // An ignore file that is about to settle is not a problem.
  const found = scan.unreadable.filter(({ code }) => code !== UNSETTLED).map(({ path }) => path);
  if (scan.scope === undefined) memory.unreadable = new Set(found);
  // What a former process recorded.
  else if (memory.unreadable === undefined) return context.ledger.sources.get(source.id).unreadable;
  else {
    const isInScope = scopeTest(scan.scope);
    memory.unreadable = new Set([...[...memory.unreadable].filter((path) => !isInScope(path)), ...found]);
  }
  return memory.unreadable.size;
}

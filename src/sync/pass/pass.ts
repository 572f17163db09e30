import type { LeftOut } from "../../wire/daemon-folders.ts";
import type { SourceRow } from "../ledger/sources/rows.ts";
import { brake, isSameRoot, losesAll, mayHold } from "../plan/brakes.ts";
import { fileTag } from "../plan/marker.ts";
import { absentName } from "../plan/versions.ts";
import type { Candidate, RelativePath, Scan } from "../plan/model.ts";
import { scopeTest } from "../plan/scope.ts";
import { UNSETTLED } from "../rules/ignore-reader.ts";
import { scanSource } from "../scan/scan.ts";
import type { Due } from "../agenda/checks.ts";
import type { BusyPaths } from "../agenda/jobs.ts";
import type { Compared } from "./compare.ts";
import type { Deletes, RootHalt } from "./deletes.ts";
import type { Deletion } from "../ledger/intents/deletes.ts";
import { type Unsent, type PassPreview, findUnsent, previewPass } from "./preview.ts";
import { type PassOptions, openParts, rootless, factsOf, withBusy } from "./parts.ts";
import { openApplying, isNewlyGone } from "./applying.ts";
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

/** Compares a source's disk with its ledger. Passes must not overlap. */
export interface Passes {
  /**
   * Scans what is due, writes moves, holds and delete intents to the ledger, and returns what must be read and sent.
   */
  plan(due: Due): Promise<PassPlan>;
  /** Returns where the last checks met something unreadable. */
  unreadable(): Iterable<RelativePath>;
  /** Returns what the rules left out of the last whole scan, by rule. */
  leftOut(): readonly LeftOut[];
  /** Returns due files that would be read and sent. Writes nothing. */
  unsent(due: Due): Promise<Unsent>;
  /** Returns what a pass over the whole source would find. Writes nothing. `before` is the source's row. */
  preview(before: SourceRow): Promise<PassPreview>;
}

/** Opens the passes of a source. */
export function openPasses(options: PassOptions): Passes {
  const { source, context, once, states } = options;
  const { ledger } = context;
  const { id, root, rules } = source;
  const parts = openParts(options);
  const { judging, comparison, deletes, sourceFiles } = parts;
  let first = true;
  /** The last pass was halted because of its root. */
  let wasHalted = false;
  /** The folder that a whole pass let through although it is not the agreed one: deletes are held because of it. */
  let judgedRoot: Scan["root"];

  const applying = openApplying({ source, context, once, states }, sourceFiles);

  const halt = (why: RootHalt, identity: Scan["root"], files: number): PassPlan => {
    wasHalted = true;
    states.forgetMissing();
    deletes.halt(why, identity, files);
    return { candidates: [], deletions: [], halted: true, newFiles: false, newRoot: false };
  };

  let leftOut: readonly LeftOut[] = [];
  const unreadable = openUnreadable(() => ledger.sources.get(id).unreadable);

  const plan = async (due: Due, busy: BusyPaths): Promise<PassPlan> => {
    const isBurstOver = deletes.isBurstOver();
    // Files in flight count as well: their own jobs may find them missing minutes apart.
    const inFlight = isBurstOver ? [...busy.known()] : [];
    let { scan, whole } = await scanDue(options, parts, due, { inFlight, isBurstOver, wasHalted });
    if (scan.root === undefined) return halt(rootless(scan, rules), undefined, 0);
    await placeAbsent(options, scan);

    let difference: Compared;
    ({ scan, difference } = await comparison.compareJudged(scan, busy, first || !whole));
    const before = ledger.sources.get(id);
    const missing = new Set(difference.gone.filter(isNewlyGone).map((row) => row.id));
    // A single scan may miss a file that moves while it runs. Only a whole one shows that a folder was emptied, how
    // much of it another root holds, or that files in flight are gone rather than renamed.
    const mayBeEmpty = (): boolean =>
      losesAll(missingInAll(deletes, difference, before), deletes.facts(before)) ||
      (difference.missingBusy > 0 && mayHold(difference.gone, deletes.facts(before, difference))) ||
      !isSameRoot(scan.root, before.root);
    // Another folder is judged as a whole before anything of it is sent. Otherwise its first file would count as an
    // agreement.
    const isAnother = ![before.root ?? scan.root, judgedRoot].some((known) => isSameRoot(known, scan.root));
    if ((!whole && isAnother) || (missing.size > 0 && (once || (!whole && mayBeEmpty())))) {
      scan = await scanSource(root, rules, judging);
      if (scan.root === undefined) return halt(rootless(scan, rules), undefined, 0);
      whole = true;
      ({ scan, difference } = await comparison.compareJudged(scan, busy, first || !whole));
    }
    const { root: identity } = scan;
    if (identity === undefined) return halt(rootless(scan, rules), undefined, 0);
    const facts = await factsOf(rules, deletes, scan, before, difference);
    const judged = brake(scan, difference.gone, facts);
    if (judged.halted) return halt({ reason: judged.reason }, scan.root, judged.held.length);
    wasHalted = false;
    if (whole) judgedRoot = scan.root;
    leftOut = scan.leftOut ?? leftOut;

    const { candidates, gone } = await applying.apply(difference, busy, missing);
    const checkAgain = (path: RelativePath, atMs: number): void => source.checkAgain(path, atMs);
    // An approval holds for this check. A second one would find it used up, and the limits would hold what was agreed
    // to.
    const isAgreed = facts.approval !== undefined && isSameRoot(facts.approval.root, scan.root);
    const decided = brake(scan, gone, facts);
    const braked = isAgreed
      ? decided
      : deletes.ripe(
          decided,
          scan,
          { quiet: states.isQuiet({ butMissing: true }), isBurstOver, inFlight },
          checkAgain,
        );
    if (isAgreed) states.forgetMissing();
    const deletions = await deletes.begin(braked);
    deletes.hold(braked.held, braked.reason);
    const isHolding = decided.held.length > 0 && !facts.keeps;
    notePass(options, scan, identity, {
      before,
      whole,
      isAnother,
      isHolding,
      unreadable: unreadable.count(scan),
    });
    if (whole) first = false;
    const newFiles = candidates.some(({ known }) => known === undefined);
    return { candidates, deletions, halted: false, newFiles, newRoot: isAnother };
  };

  return {
    plan: (due) => withBusy(states, (busy) => plan(due, busy)),
    unreadable: unreadable.paths,
    leftOut: () => leftOut,
    unsent: (due) => findUnsent(options, parts, due),
    preview: (before) => previewPass(options, parts, before),
  };
}

/** Gives resources whose file was not there when a list showed them to the files that have appeared since. */
async function placeAbsent({ source, context: { ledger } }: PassOptions, scan: Scan): Promise<void> {
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
function notePass(
  { source: { id, rules }, context: { ledger } }: PassOptions,
  scan: Scan,
  identity: NonNullable<Scan["root"]>,
  pass: {
    readonly before: SourceRow;
    readonly whole: boolean;
    /** The root is another folder than before. */
    readonly isAnother: boolean;
    /** Deletes are held. */
    readonly isHolding: boolean;
    /** How many paths are unreadable. */
    readonly unreadable: number;
  },
): void {
  const { before, whole, isAnother, isHolding, unreadable } = pass;
  // Also the same one under another device number: without a time of birth nothing else identifies it.
  const rootIsNew = before.root?.dev !== identity.dev || before.root.ino !== identity.ino;
  const isHidden =
    before.root !== undefined && scan.unreadable.some(({ path }) => ledger.tree.hasFiles(id, path));
  const settled = rules.takeSettled(whole);
  const mounts = rules.mounts?.takeNoted() ?? [];
  ledger.note(() => {
    for (const file of settled) ledger.tree.setIgnoreFile(id, file);
    for (const mount of mounts) ledger.tree.setMount(id, mount);
    if (isAnother) ledger.contacts.distrust(id);
    // While deletes are held because of another root, or while files may be hidden, it is not the agreed one. A scan
    // of a few paths does not show that.
    if (whole && rootIsNew && !isHolding && !isHidden) ledger.sources.setRoot(id, identity);
    if (unreadable !== before.unreadable) ledger.sources.setUnreadable(id, unreadable);
    if (whole && before.approved) ledger.sources.approvalUsed(id);
  });
}

/** Returns how many files are missing anywhere: a partial check sees only held rows in its part. */
function missingInAll(deletes: Deletes, { gone, missingBusy }: Compared, { held }: SourceRow): number {
  return deletes.missingWith(gone.filter(isNewlyGone)) + held + missingBusy;
}

/** Where the checks of a source met something unreadable. `before`: how many a former process recorded. */
function openUnreadable(before: () => number): {
  /** Returns how many paths are unreadable as of this scan. A part that is readable again no longer counts. */
  count: (scan: Scan) => number;
  paths: () => Iterable<RelativePath>;
} {
  /** Undefined before the first check of the whole source. */
  let unreadable: ReadonlySet<RelativePath> | undefined;
  return {
    count: (scan) => {
      // An ignore file that is about to settle is not a problem.
      const found = scan.unreadable.filter(({ code }) => code !== UNSETTLED).map(({ path }) => path);
      if (scan.scope === undefined) unreadable = new Set(found);
      else if (unreadable === undefined) return before();
      else {
        const isInScope = scopeTest(scan.scope);
        unreadable = new Set([...[...unreadable].filter((path) => !isInScope(path)), ...found]);
      }
      return unreadable.size;
    },
    paths: () => unreadable ?? [],
  };
}

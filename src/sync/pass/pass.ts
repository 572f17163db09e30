import { hash } from "node:crypto";
import { setTimeout } from "node:timers/promises";
import type { SyncConfig } from "../../config/schema.ts";
import type { ActionContext, ActionSource } from "../actions/context.ts";
import { noteRefused, noteSkipped } from "../actions/prepare.ts";
import { METADATA_VERSION } from "../actions/observe.ts";
import { CONVERTER_VERSION, EXTRACTOR_VERSION } from "../read/recipe.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { SourceRow } from "../ledger/sources.ts";
import {
  brake,
  type BrakeFacts,
  type Braked,
  isSameRoot,
  losesAll,
  mayHold,
  REPLACED_FILES_MIN,
} from "../plan/brakes.ts";
import {
  type Difference,
  EMPTY_FILE,
  type KnownFile,
  type Candidate,
  type RelativePath,
  type Scan,
  type ScanEntry,
} from "../plan/model.ts";
import { followMoves, sameIdentity, moveSuspects } from "../plan/moves.ts";
import { scopeTest } from "../plan/reconcile.ts";
import { UNSETTLED } from "../rules/ignore-files.ts";
import type { Rules } from "../rules/rules.ts";
import { scanPaths, scanSource } from "../scan/scan.ts";
import type { Due } from "../agenda/checks.ts";
import type { BusyPaths } from "../agenda/jobs.ts";
import type { PathStates } from "../agenda/path-states.ts";
import { type Compared, openComparison } from "./compare.ts";
import { openDeletes, type Deletes, type RootHalt } from "./deletes.ts";
import type { Deletion } from "../ledger/intents.ts";
import { leftOutOf } from "./left-out.ts";
import { applyMoves, findMoves, isSameFile, widen, type SourceFiles } from "./moved-files.ts";
import { withoutOtherSpellings } from "./spellings.ts";

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
  /** Returns due files that would be read and sent. Writes nothing. */
  unsent(due: Due): Promise<Unsent>;
  /** Returns what a pass over the whole source would find. Writes nothing. `before` is the source's row. */
  preview(before: SourceRow): Promise<PassPreview>;
}

/** What a pass would find. */
export interface PassPreview extends Pick<Difference, "refused" | "skipped"> {
  readonly candidates: readonly Candidate[];
  readonly braked: Braked;
}

/** What a pass would have to do. */
export interface Unsent {
  readonly candidates: readonly Candidate[];
  /** Paths whose file is gone, and whose delete no person has to approve. */
  readonly gone: readonly RelativePath[];
  /** Reports whether a path was checked. */
  readonly inScope: (path: RelativePath) => boolean;
}

export interface PassOptions {
  readonly source: Pick<ActionSource, "id" | "root" | "rules" | "rulesKey" | "checkAgain">;
  readonly context: Pick<ActionContext, "ledger" | "now" | "moved" | "report" | "trash" | "timing">;
  readonly sync: SyncConfig;
  readonly once: boolean;
  readonly states: PathStates;
  readonly signal: AbortSignal;
}

/** Above this number of paths, a scan of the whole source is cheaper. */
const PATHS_MAX = 20_000;

/** Descriptions of folders whose key is cached. */
const KEYS_MAX = 10_000;

/** Number of deletes that are sent after checks of only their paths still find them missing. */
const FEW_DELETES = 10;

/**
 * A file that is in flight under its old name is checked when that ends, and this often meanwhile: a service may be
 * down for a day, and the file may be renamed again or disappear.
 */
const RENAME_WAIT_MS = 60_000;

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

  const unreadable = openUnreadable(() => ledger.sources.get(id).unreadable);

  const plan = async (due: Due, busy: BusyPaths): Promise<PassPlan> => {
    const isBurstOver = deletes.isBurstOver();
    // Files in flight count as well: their own jobs may find them missing minutes apart.
    const inFlight = isBurstOver ? [...busy.known()] : [];
    let { scan, whole } = await scanDue(options, parts, due, { inFlight, isBurstOver, wasHalted });
    if (scan.root === undefined) return halt(rootless(scan, rules), undefined, 0);

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

    const { candidates, gone } = await applying.apply(difference, due, busy, missing);
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
    const isHolding = decided.held.length > 0;
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
    unsent: (due) => findUnsent(options, parts, due),
    preview: (before) => previewPass(options, parts, before),
  };
}

/** What all passes of a source share. */
interface PassParts {
  readonly scanning: { readonly signal: AbortSignal; readonly onSlice: () => void };
  readonly judging: PassParts["scanning"] & { readonly judgesMounts: boolean };
  readonly comparison: ReturnType<typeof openComparison>;
  readonly sourceFiles: SourceFiles;
  readonly deletes: Deletes;
}

function openParts({ source, context, sync, once, states, signal }: PassOptions): PassParts {
  const { ledger, now, moved, timing } = context;
  const scanning = { signal, onSlice: moved };
  const keepTries = context.trash?.tries ?? 0;
  return {
    scanning,
    judging: { ...scanning, judgesMounts: true },
    comparison: openComparison({ source, context, states, signal }),
    sourceFiles: { source: source.id, rules: source.rules, ledger, signal, moved },
    deletes: openDeletes({ source: source.id, ledger, sync, states, now, once, keepTries, timing }),
  };
}

/** Scans what is due: these paths, or the `whole` source. */
async function scanDue(
  { source: { root, rules }, context, states }: PassOptions,
  { scanning, judging, sourceFiles }: PassParts,
  due: Due,
  when: {
    readonly inFlight: readonly RelativePath[];
    readonly isBurstOver: boolean;
    readonly wasHalted: boolean;
  },
): Promise<{ readonly scan: Scan; readonly whole: boolean }> {
  const { inFlight, isBurstOver, wasHalted } = when;
  const burst = states.missing();
  // Not every folder reports each delete: before more than a few are sent, all of it is scanned.
  const isLarge = isBurstOver && (burst.size > FEW_DELETES || inFlight.length > PATHS_MAX);
  // A scan of a few paths does not list the root, and would end a halt because of an unreadable one.
  const whole = due.all || wasHalted || due.paths.length > PATHS_MAX || isLarge;
  const scan = whole
    ? await scanSource(root, rules, judging)
    : await scanPaths(root, rules, due.paths, scanning);
  context.ledger.flush();
  if (whole) return { scan, whole };
  // Two spellings of one file may come from either scan.
  const wider = await widen(sourceFiles, scan, [...burst.keys(), ...inFlight], isBurstOver, states.due());
  return { scan: withoutOtherSpellings(root, wider), whole };
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
    if (isAnother) ledger.drift.distrust(id);
    // While deletes are held because of another root, or while files may be hidden, it is not the agreed one. A scan
    // of a few paths does not show that.
    if (whole && rootIsNew && !isHolding && !isHidden) ledger.sources.setRoot(id, identity);
    if (unreadable !== before.unreadable) ledger.sources.setUnreadable(id, unreadable);
    if (whole && before.approved) ledger.sources.approvalUsed(id);
  });
}

/** See `Passes.unsent`. */
async function findUnsent(
  { source: { root, rules }, states }: PassOptions,
  { scanning, comparison }: PassParts,
  due: Due,
): Promise<Unsent> {
  const whole = due.all || due.paths.length > PATHS_MAX;
  const scan = whole
    ? await scanSource(root, rules, scanning)
    : await scanPaths(root, rules, due.paths, scanning);
  // Nothing is known about a missing folder.
  if (scan.root === undefined) return { candidates: [], gone: [], inScope: () => false };
  const found = await withBusy(states, (busy) => comparison.compare(scan, busy, true));
  const gone = found.gone.filter(({ state }) => state !== "held").map(({ path }) => path);
  return { candidates: found.candidates, gone, inScope: scopeTest(scan.scope) };
}

/** See `Passes.preview`. */
async function previewPass(
  { source: { root, rules }, context, states, signal }: PassOptions,
  { judging, comparison, deletes, sourceFiles }: PassParts,
  before: SourceRow,
): Promise<PassPreview> {
  let scan = await scanSource(root, rules, judging);
  for (let rest = rules.takeIgnoreRest(); rest?.isOverdue === false; rest = rules.takeIgnoreRest()) {
    await setTimeout(Math.max(0, rest.atMs - context.now()), undefined, { signal });
    scan = await scanSource(root, rules, judging);
  }
  const { difference } = await withBusy(states, (busy) => comparison.compareJudged(scan, busy, true));
  const facts = await factsOf(rules, deletes, scan, before, difference);
  const judged = brake(scan, difference.gone, facts);
  if (judged.halted) {
    const reason = scan.root === undefined ? rootless(scan, rules).reason : judged.reason;
    return { candidates: [], refused: [], skipped: [], braked: { ...judged, reason } };
  }
  const byHash = await findMoves(sourceFiles, difference.candidates, difference.gone);
  const { candidates, gone } = followMoves(difference, difference.candidates, byHash);
  const { refused, skipped } = difference;
  return { candidates, refused, skipped, braked: brake(scan, gone, facts) };
}

/**
 * Returns a key for everything that turns the same bytes into a recipe. Under another value each file is read again.
 */
export function rulesKeyOf({ source }: Rules): number {
  const { collection, ownerId, settings, rules, allowSecrets } = source;
  // Without one the key is that of earlier versions, so that an upgrade reads nothing again.
  const allowed = allowSecrets.length === 0 ? [] : [allowSecrets];
  return keyOf([EXTRACTOR_VERSION, CONVERTER_VERSION, collection, ownerId, settings, rules, ...allowed]);
}

function keyOf(parts: readonly unknown[]): number {
  // 48 bits, so that it is a whole number for SQLite and JavaScript; 0 means "never".
  return Number.parseInt(hash("sha256", JSON.stringify(parts)).slice(0, 12), 16) || 1;
}

/**
 * Returns such keys by path. For a service that takes metadata, what turns a file into metadata counts as well: the
 * configuration, and the descriptions of its folders.
 */
export function rulesKeysOf(rules: Rules, takesMetadata: () => boolean): (path: RelativePath) => number {
  const plain = rulesKeyOf(rules);
  const known = new Map<string, number>();
  return (path) => {
    if (!takesMetadata()) return plain;
    const folderDescription = rules.folderDescription(path) ?? "";
    const found = known.get(folderDescription);
    if (found !== undefined) return found;
    if (known.size === KEYS_MAX) known.clear();
    const key = keyOf([plain, METADATA_VERSION, rules.source.metadata, folderDescription]);
    known.set(folderDescription, key);
    return key;
  };
}

/** Runs with one snapshot of what is in flight, so that what is decided by it also begins by it. */
async function withBusy<T>(
  states: Pick<PathStates, "busyPaths">,
  run: (busy: BusyPaths) => Promise<T>,
): Promise<T> {
  const busy = states.busyPaths();
  try {
    return await run(busy);
  } finally {
    busy.close();
  }
}

/** Applies what needs no request. */
function applyQuietly(
  context: PassOptions["context"],
  source: PassOptions["source"],
  { returned, forgotten, refused, skipped }: Difference,
): void {
  const { ledger } = context;
  if (returned.length + forgotten.length > 0) {
    ledger.note(() => {
      for (const row of returned) ledger.files.restore(row.id, row.path);
      for (const row of forgotten) ledger.files.forget(row.id);
    });
  }
  for (const { path, reason, known } of refused) {
    if (known?.state === "failed" && known.ino === 0) continue; // Noted before; its identity is unknown.
    noteRefused(
      context,
      source,
      { entry: { path, sizeBytes: 0, mtimeMs: 0, ctimeMs: 0, ino: 0 }, known },
      reason,
    );
  }
  for (const { entry, reason, known } of skipped) noteSkipped(context, source, { entry, known }, reason);
}

/** Restores rows whose delete was held and whose path has a file again. */
function unhold(ledger: Ledger, candidates: readonly Candidate[]): readonly Candidate[] {
  const held = candidates.flatMap(({ known, from }) =>
    known?.state === "held" && from === undefined ? { id: known.id, to: known.path } : [],
  );
  if (held.length > 0) ledger.note(() => ledger.files.repath(held));
  return candidates.map((candidate) =>
    candidate.known?.state === "held"
      ? { ...candidate, known: { ...candidate.known, state: "agreed" } }
      : candidate,
  );
}

/** Applies what a comparison found, except deletes. */
interface Applying {
  /**
   * Follows moves, records what needs no request, and returns what may be read and sent now, and the rows whose file is
   * gone. `missing`: ids of the rows whose file the pass's first scan did not find.
   */
  apply(
    difference: Compared,
    due: Due,
    busy: BusyPaths,
    missing: ReadonlySet<number>,
  ): Promise<{ readonly candidates: readonly Candidate[]; readonly gone: readonly KnownFile[] }>;
}

function openApplying(
  { source, context, once, states }: Pick<PassOptions, "source" | "context" | "once" | "states">,
  sourceFiles: SourceFiles,
): Applying {
  const { ledger, now } = context;
  const hasRested = ({ entry }: Pick<Candidate, "entry">, due: Due): boolean =>
    states.rested(entry, now(), due.forced.has(entry.path), Date.now());
  /** A file that only received the inode number of one in flight need not wait for that one. */
  const wasRenamed =
    (entry: ScanEntry) =>
    (taken: ScanEntry): boolean =>
      sameIdentity(taken, entry) || isSameFile(sourceFiles, { known: taken, entry });
  const busyPathOf = ({ entry, known }: Candidate, busy: BusyPaths): RelativePath | undefined =>
    known === undefined ? busy.otherPath(entry, wasRenamed(entry)) : undefined;
  const mayBegin = (candidate: Candidate, due: Due, busy: BusyPaths): boolean => {
    const { entry } = candidate;
    if (!hasRested(candidate, due)) return false;
    const busyPath = busyPathOf(candidate, busy);
    if (busyPath === undefined) return true;
    // Renamed while in flight: when that ends there is a row to move, which this comparison did not see.
    const waitMs = states.checkAfter(busyPath, entry.path) ? RENAME_WAIT_MS : 0;
    states.checkAgain(entry.path, now() + waitMs, now());
    return false;
  };
  /** In a single pass, leaves rows for later whose file may turn out to have moved. */
  const surelyGone = (
    rows: readonly KnownFile[],
    unrested: readonly Candidate[],
    missing: ReadonlySet<number>,
  ): readonly KnownFile[] => {
    // A copy that has not rested may turn out to be the very file. A daemon waits for the end of a burst anyway.
    if (!once) return rows;
    const sizes = new Set(moveSuspects(unrested, rows).map(({ entry }) => entry.sizeBytes));
    const [gone, missedOnce] = partition(
      rows,
      (row) => !isNewlyGone(row) || (missing.has(row.id) && !sizes.has(row.sizeBytes)),
    );
    for (const { path } of missedOnce) source.checkAgain(path);
    return gone;
  };
  return {
    apply: async (difference, due, busy, missing) => {
      const [rested, unrested] = partition(difference.candidates, (each) => mayBegin(each, due, busy));
      // A file that is still written to keeps its resource under its new name. Otherwise it would count as deleted
      // until it rests.
      const edited =
        difference.gone.length === 0
          ? []
          : difference.candidates.filter((candidate) => busyPathOf(candidate, busy) === undefined);
      const byHash = await findMoves(sourceFiles, rested, difference.gone, edited);
      const applied = followMoves(difference, rested, byHash);
      await applyMoves(sourceFiles, applied);
      // A program that rewrites a file empties it first.
      const skipped = difference.skipped.filter((skip) => skip.reason !== EMPTY_FILE || hasRested(skip, due));
      applyQuietly(context, source, { ...difference, skipped });
      const candidates = unhold(ledger, applied.candidates);
      return { candidates, gone: surelyGone(applied.gone, unrested, missing) };
    },
  };
}

/** Returns the facts for the brakes, including what the rules leave out. */
async function factsOf(
  rules: Rules,
  deletes: Deletes,
  scan: Scan,
  before: SourceRow,
  { gone, missingBusy, missingNew: missingAnew, hidden }: Compared,
): Promise<BrakeFacts> {
  const { root: identity } = scan;
  // A former process may have sent files of the folder that was here then.
  const missingNew = missingAnew + (isSameRoot(before.root, identity) ? 0 : deletes.missingInDoubt(scan));
  const isSure = identity?.born === true || gone.length < REPLACED_FILES_MIN;
  const madeLately = isSure ? undefined : deletes.madeLately();
  const facts = deletes.facts(before, { madeLately, missingBusy, missingNew, hidden });
  return mayHold(gone, facts) ? { ...facts, leftOut: await leftOutOf(rules, gone) } : facts;
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

/** Missing, with nothing decided about its delete yet. */
function isNewlyGone({ state }: KnownFile): boolean {
  return state !== "held" && state !== "doomed";
}

function partition<T>(items: readonly T[], test: (item: T) => boolean): readonly [T[], T[]] {
  const { yes = [], no = [] } = Object.groupBy(items, (item) => (test(item) ? "yes" : "no"));
  return [yes, no];
}

/** Explains why a folder's root has no identity. */
function rootless(
  { unreadable }: Pick<Scan, "unreadable">,
  { source: { unit } }: Pick<Rules, "source">,
): RootHalt {
  const error = unreadable.find(({ path }) => path === "")?.code;
  if (error !== undefined) return { code: "unreadable", reason: `the folder cannot be read: ${error}` };
  // Nothing that appears at its path is visible before that unit is restarted.
  return unit === undefined
    ? { code: "missing", reason: "the folder is missing or is not a folder" }
    : { code: "not-shown", unit, reason: `the folder is missing, or ${unit} does not show it` };
}

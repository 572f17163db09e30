import { setImmediate as nextTurn } from "node:timers/promises";
import type { ActionContext } from "../actions/context.ts";
import type { AcknowledgedFile } from "../ledger/drift/drift.ts";
import type { Unsearched } from "../ledger/drift/adoptions.ts";
import { applyMoves, findMoves, type SourceFiles } from "../pass/moved-files.ts";
import { inSlices } from "../pass/slices.ts";
import { isWithin } from "../plan/unsearched.ts";
import { isSameRoot } from "../plan/brakes.ts";
import type { KnownFile, RelativePath, Scan, ScanEntry } from "../plan/model.ts";
import { followMoves, sameIdentity } from "../plan/moves.ts";
import { reconcileInSteps } from "../plan/reconcile.ts";
import { scanSource } from "../scan/scan.ts";
import type { AdoptingSource } from "./candidates.ts";
import type { Found } from "./list.ts";

/** Files and rows that may take over resources. */
export interface Candidates {
  /** Parts that were not searched before. */
  readonly before: Unsearched;
  /** Nothing was searched before. */
  readonly isFirst: boolean;
  readonly entries: readonly ScanEntry[];
  readonly candidateRows: ReadonlyMap<string, AcknowledgedFile>;
  /**
   * Files that changed since the old ledger saw them, or whose rules did, while their resource did not, and files that
   * were not in agreement, with their rows. They may have received another resource, as when their kind or chunk settings
   * changed.
   */
  readonly changed: ReadonlyMap<string, AcknowledgedFile>;
  /** Titles and descriptions of rows that keep their resource and that a resource without a row also has. */
  readonly retained: ReadonlySet<string>;
  /** Rows whose resource differs from the row, and that have no file at their path to match with another one. */
  readonly unmatchedRows: readonly AcknowledgedFile[];
  /** The unmatched rows whose file is gone and whose resource was changed: it may be another file's by now. */
  readonly goneRows: readonly AcknowledgedFile[];
  /** Number of rows for files that are not to be deleted. */
  readonly rows: number;
  /** Parts of the folder that could not be read; "" is all of it, also if it is missing or empty. */
  readonly unreadable: readonly RelativePath[];
  /** False: the folder is missing, empty or another one, and its files are matched another time. */
  readonly isThere: boolean;
  /** Rows of an old ledger received other names. */
  readonly hasFollowed: boolean;
}

/** Rows checked between two turns of the loop. */
const PAGE_ROWS = 1000;
/** The whole folder, as a list of parts. */
export const WHOLE_FOLDER: readonly RelativePath[] = [""];

/**
 * Returns the candidates: files without a resource, and rows whose own resource is in question. All rows of a new
 * ledger are in question, because it made them before it knew any list; of an old ledger, those whose resource is
 * missing or altered. When adoption is repeated, files that are in agreement by now, or were read before, are no
 * candidates. A row of an old ledger whose file was unreadable is one as soon as the list omits its resource.
 */
export async function findCandidates(
  context: ActionContext,
  source: AdoptingSource,
  { unowned, sound, altered, forgottenMs }: Found,
  {
    whole,
    signal,
    isBusy,
  }: {
    readonly whole: boolean;
    readonly signal: AbortSignal;
    readonly isBusy: (path: RelativePath) => boolean;
  },
): Promise<Candidates> {
  const { ledger } = context;
  const scan = await scanSource(source.root, source.rules, { signal, onSlice: context.moved });
  // Another folder than the ledger knows holds other files. An old ledger shows that, a new one cannot.
  const { root } = ledger.sources.get(source.id);
  const isAgreed = root === undefined || isSameRoot(root, scan.root);
  const hasFollowed = whole && isAgreed && (await followFiles(context, source, scan, signal));
  const before = ledger.drift.unsearched(source.id);
  const isAgain = before.parts.length > 0;
  /** A new ledger made its rows before there was a list, so the list does not decide whether they are candidates. */
  const isOld = whole || isAgain;
  // The pass halts then. Files of the other folder must not count as known ones.
  const isOther = !isAgreed && holdsNone(context, source, scan);
  const mayMatch = ({ path }: ScanEntry): boolean =>
    !isOther && (!isAgain || isWithin(path, before.parts)) && !isBusy(path);
  const entries = new Map(scan.entries.filter(mayMatch).map((entry) => [entry.path, entry]));
  const labels = new Set([...unowned, ...altered.values()].map(({ label }) => label));
  const retained = new Set<string>();
  const candidateRows = new Map<string, AcknowledgedFile>();
  const changed = new Map<string, AcknowledgedFile>();
  const unmatchedRows: AcknowledgedFile[] = [];
  let rows = 0;
  const { collection: tier, ownerId } = source.rules.source;
  for (let afterId = 0; ;) {
    signal.throwIfAborted();
    const page = ledger.drift.page({ tier, ownerId }, afterId, PAGE_ROWS);
    for (const row of page) {
      if (row.source !== source.id) continue;
      const isSound = isOld && sound.has(row.id);
      if (row.state === "held" || row.state === "doomed") {
        if (!isSound) unmatchedRows.push(row);
        continue;
      }
      rows += 1;
      // The file of an old ledger's row was unreadable when the scope was listed, and the list may have been stale.
      const isUncompared =
        !altered.has(row.id) && (row.storedMs ?? Infinity) < forgottenMs && isWithin(row.path, before.parts);
      const keepsResource =
        isSound ||
        (isAgain && (row.state === "agreed" ? !isUncompared : !isWithin(row.path, before.parts))) ||
        (isOld && altered.has(row.id) && row.state !== "agreed");
      const isLike = labelsOf(row).some((label) => labels.has(label));
      if (keepsResource && isLike) retained.add(row.label);
      if (!keepsResource && entries.has(row.path)) candidateRows.set(row.path, row);
      else if (!isSound && !(isAgain && row.state === "agreed")) unmatchedRows.push(row);
      const isCompared = whole && unowned.length > 0 && (isSound || (keepsResource && altered.has(row.id)));
      const known = isCompared ? ledger.files.get(row.id) : undefined;
      const hasOtherRules = isLike && known?.rulesKey !== source.rulesKey(row.path);
      const entry = entries.get(row.path);
      const mayHaveOther = row.state !== "agreed" || hasOtherRules;
      if (known !== undefined && entry !== undefined && (mayHaveOther || hasChanged(entry, known)))
        changed.set(row.path, row);
      else if (keepsResource) entries.delete(row.path);
    }
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE_ROWS) break;
    afterId = last.id;
    await nextTurn();
  }
  const { isThere, unreadable } = seenOf(context, source, scan, { unowned, isAgreed, before });
  const there = new Set(scan.entries.map(({ path }) => path));
  const isGone = ({ id, path, state }: AcknowledgedFile): boolean =>
    whole &&
    isThere &&
    altered.has(id) &&
    state !== "held" &&
    state !== "doomed" &&
    !there.has(path) &&
    !isWithin(path, unreadable);
  return {
    before,
    isFirst: !isAgain,
    entries: [...entries.values()],
    candidateRows,
    changed,
    retained,
    unmatchedRows,
    goneRows: unmatchedRows.filter(isGone),
    rows,
    unreadable,
    isThere,
    hasFollowed,
  };
}

/** Reports whether none of the files that have a resource is in the folder. */
function holdsNone({ ledger }: ActionContext, { id }: AdoptingSource, { entries }: Scan): boolean {
  const isKnown = ({ path }: ScanEntry): boolean => (ledger.files.living(id, path)?.docId ?? null) !== null;
  return ledger.sources.withResource(id) > 0 && !entries.some(isKnown);
}

/** Returns what a scan could see of the folder. `isAgreed`: it is the folder that the ledger knows. */
function seenOf(
  { ledger }: ActionContext,
  { id }: AdoptingSource,
  scan: Scan,
  { unowned, isAgreed, before }: Pick<Found, "unowned"> & { isAgreed: boolean; before: Unsearched },
): Pick<Candidates, "isThere" | "unreadable"> {
  // Files may be gone for some time, as when a disk is not mounted. They are matched when they are back. A surplus
  // resource does not show that: while there are candidates, nothing deletes it.
  const doubted = new Set(
    ledger.intents.doubts(id).map(({ docId, observed }) => docId !== null && observed.label),
  );
  // The same folder had files when it was searched, and no delete waits for a person any more.
  const isKnown = before.parts.length > 0 && !before.parts.includes("");
  const isEmptiedForGood = isKnown && isAgreed && ledger.sources.withResource(id) === 0;
  const isEmptied =
    scan.entries.length === 0 && !isEmptiedForGood && unowned.some(({ label }) => !doubted.has(label));
  const isAway = scan.root === undefined || isEmptied;
  return {
    isThere: !isAway && isAgreed,
    unreadable: isAway ? WHOLE_FOLDER : scan.unreadable.map(({ path }) => path),
  };
}

/** Returns the labels of a row's resource, as sent and as the service stores it. */
export function labelsOf({ label, storedLabel }: AcknowledgedFile): readonly string[] {
  return storedLabel === null ? [label] : [label, storedLabel];
}

function hasChanged(entry: ScanEntry, row: KnownFile): boolean {
  return !sameIdentity(entry, row) || entry.ctimeMs !== row.ctimeMs;
}

/**
 * Gives the rows of an old ledger the names that their files have now, as the next pass would. A row must not be
 * compared with the file that took its place. Reports whether any has another name now.
 *
 * A path whose create has no answer yet is in flight, as in a pass: a row that moved there would count as what the
 * create replaces, and its resource would be deleted.
 */
async function followFiles(
  { ledger, moved }: ActionContext,
  { id, rules, rulesKey }: AdoptingSource,
  scan: Scan,
  signal: AbortSignal,
): Promise<boolean> {
  const sourceFiles: SourceFiles = { source: id, rules, ledger, signal, moved };
  const unanswered = new Set(ledger.intents.creates(id).map(({ path }) => path));
  const options = { rulesKey, busy: (path: RelativePath) => unanswered.has(path) };
  const difference = await inSlices(reconcileInSteps(scan, ledger.files.all(id), options), signal, moved);
  const more = await findMoves(sourceFiles, difference.candidates, difference.gone);
  const followed = followMoves(difference, difference.candidates, more);
  await applyMoves(sourceFiles, followed);
  ledger.flush();
  return followed.moves.length > 0;
}

import { pairInSteps } from "./moves.ts";
import { STEP_ITEMS, type Steps, takeAll } from "../../lib/steps.ts";
import type { TextMap } from "./text-map.ts";
import {
  type Difference,
  EMPTY_FILE,
  type KnownFile,
  type Candidate,
  type Move,
  type Scan,
  type ScanEntry,
} from "./model.ts";
import {
  type ReconcileOptions,
  compareRows,
  type Blocked,
  isHeld,
  sameStat,
  hasRulesOf,
} from "./compared-rows.ts";

/**
 * Compares disk with ledger. Pure; the order of the scan's entries does not matter. `known` holds each row in the
 * scan's scope and may hold others, which are ignored. It is read once and not retained, so a ledger may stream a
 * million rows through.
 */
export function reconcile(scan: Scan, known: Iterable<KnownFile>, options: ReconcileOptions): Difference {
  return takeAll(reconcileInSteps(scan, known, options));
}

/** Like `reconcile`, in steps. `busy` must answer the same for a path throughout. */
export function* reconcileInSteps(
  scan: Scan,
  known: Iterable<KnownFile>,
  options: ReconcileOptions,
): Steps<Difference> {
  const busy = options.busy ?? (() => false);
  const { entries, uncompared, refusals, skips, ...rows } = yield* compareRows(scan, known, options, busy);
  // The rest of `entries` has no living row of its own. A held row of that path takes it, whatever it holds now,
  // unless it is the file of a living row under a new name: a document keeps its id with its file.
  const { back, restored, displaced } = assignHeld(rows.heldHere, entries, options);
  const isRenamed = restored.length === 0 ? () => false : renamedTest(rows.missing, rows.changed);
  const [renamed, kept] = [restored.filter(isRenamed), restored.filter((each) => !isRenamed(each))];
  // In the order of the scan: a map has none.
  const fresh: ScanEntry[] = [];
  let items = 0;
  for (const entry of scan.entries) {
    if (++items % STEP_ITEMS === 0) yield;
    if (entries.has(entry.path)) fresh.push(entry);
  }

  const blockedRows = rows.blocked.map(({ row }) => row).filter(({ docId }) => docId !== null);
  const pairs = yield* pairInSteps(
    [...rows.missing, ...displaced, ...blockedRows],
    [...rows.changed, ...renamed],
    fresh,
  );
  // A row whose file has another name now moved there. The file at its old path has no row.
  const movedIds = new Set(rows.blocked.length === 0 ? [] : pairs.moves.map(({ known: { id } }) => id));
  const stuck = rows.blocked.filter(({ row }) => !movedIds.has(row.id));
  const stuckIds = new Set(stuck.map(({ row }) => row.id));
  const gone = stuckIds.size === 0 ? pairs.gone : pairs.gone.filter(({ id }) => !stuckIds.has(id));
  for (const { row } of stuck) {
    refusals.delete(row.path);
    skips.delete(row.path);
  }
  const { refused, skipped } = yield* noteStuck(stuck, options);
  for (const refusal of refusals.values()) if (!busy(refusal.path)) refused.push(refusal);
  for (const skip of skips.values()) if (!busy(skip.entry.path)) skipped.push(skip);
  const candidates: Candidate[] = kept.map(({ entry, known: row }) => ({ entry, known: row }));
  for (const { entry, known: row } of pairs.moves) candidates.push({ entry, known: row, from: row.path });
  for (const { entry, known: row } of pairs.stayed) {
    if (++items % STEP_ITEMS === 0) yield;
    if (isBlank(entry, row)) skipped.push({ entry, reason: EMPTY_FILE, known: row });
    else candidates.push({ entry, known: row });
  }
  for (const entry of pairs.fresh) {
    if (++items % STEP_ITEMS === 0) yield;
    if (isBlank(entry, undefined)) skipped.push({ entry, reason: EMPTY_FILE });
    else candidates.push({ entry, known: undefined });
  }

  return {
    moves: pairs.moves,
    candidates,
    returned: back,
    gone: gone.filter((row) => row.docId !== null),
    forgotten: gone.filter((row) => row.docId === null),
    refused,
    skipped,
    uncompared,
    missingBusy: rows.missingBusy.length - countRenamed(rows.missingBusy, fresh),
    hidden: rows.hidden,
  };
}

/** Returns what to note of rows whose path has a file that is not taken, and whose own file is nowhere else. */
function* noteStuck(
  stuck: readonly Blocked[],
  options: ReconcileOptions,
): Steps<{ refused: Difference["refused"][number][]; skipped: Difference["skipped"][number][] }> {
  const refused: Difference["refused"][number][] = [];
  const skipped: Difference["skipped"][number][] = [];
  let items = 0;
  for (const { row, refusal, skip } of stuck) {
    if (++items % STEP_ITEMS === 0) yield;
    const reason = refusal?.reason ?? skip?.reason ?? "";
    // This version may no longer take the kind. The resource stays, and a person is notified.
    if (refusal !== undefined || row.docId !== null) refused.push({ path: row.path, reason, known: row });
    else if (skip !== undefined && !isKnownSkip(row, options)) skipped.push({ ...skip, known: row });
  }
  return { refused, skipped };
}

/** Returns how many of the rows have their file under another name now. */
function countRenamed(rows: readonly KnownFile[], fresh: readonly ScanEntry[]): number {
  if (rows.length === 0) return 0;
  const inodes = new Set(fresh.map(({ ino }) => ino));
  return rows.filter(({ ino }) => inodes.has(ino)).length;
}

/**
 * Assigns to held rows the entries of their paths, and removes these from `entries`. `back`: the file is unchanged.
 * `restored`: it must be checked. `displaced` rows get none: another file took the name, or a person agreed to the
 * delete.
 */
function assignHeld(
  rows: readonly KnownFile[],
  entries: TextMap<ScanEntry>,
  options: ReconcileOptions,
): { back: KnownFile[]; restored: Move[]; displaced: KnownFile[] } {
  const back: KnownFile[] = [];
  const restored: Move[] = [];
  const displaced: KnownFile[] = [];
  /** 2: unchanged; 1: the same file, changed; 0: another file. */
  const likeness = (row: KnownFile): number => {
    const entry = entries.get(row.path);
    if (entry === undefined || entry.ino !== row.ino) return 0;
    return sameStat(entry, row) && hasRulesOf(row, options) ? 2 : 1;
  };
  // A path may have several held rows. The row whose very file is back comes first, then the oldest.
  const inOrder = rows
    .map((row) => ({ row, likeness: likeness(row) }))
    .sort((a, b) => b.likeness - a.likeness || a.row.id - b.row.id);
  for (const { row, likeness: alike } of inOrder) {
    const asItWas = alike === 2;
    const entry = entries.get(row.path);
    if (entry === undefined || (row.state === "doomed" && !asItWas)) {
      displaced.push(row);
      continue;
    }
    entries.delete(row.path);
    if (asItWas) back.push(row);
    else restored.push({ entry, known: row });
  }
  return { back, restored, displaced };
}

/** Returns a test for whether another file than the held row's is that of a living row whose path lost it. */
function renamedTest(missing: readonly KnownFile[], changed: readonly Move[]): (move: Move) => boolean {
  const keyOf = ({ ino, sizeBytes, mtimeMs }: ScanEntry | KnownFile): string =>
    `${ino}:${sizeBytes}:${mtimeMs}`;
  const lost = changed.filter(({ entry, known }) => entry.ino !== known.ino).map(({ known }) => known);
  const living = new Set([...missing, ...lost].filter((row) => !isHeld(row)).map(keyOf));
  return ({ entry, known }) => entry.ino !== known.ino && living.has(keyOf(entry));
}

/**
 * Reports whether a file is empty and always was, as far as the service knows. A file that was emptied is still sent;
 * otherwise searches would find its old text for ever.
 */
export function isBlank(entry: ScanEntry, row: KnownFile | undefined): boolean {
  return entry.sizeBytes === 0 && (row === undefined || row.docId === null);
}

/** Reports whether the row already records that its file is skipped. */
function isKnownSkip(row: KnownFile, options: ReconcileOptions): boolean {
  return row.state === "skipped" && hasRulesOf(row, options);
}

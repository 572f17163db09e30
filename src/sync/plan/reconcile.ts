import { pairByIdentity, sameIdentity } from "./moves.ts";
import {
  type Difference,
  EMPTY_FILE,
  type KnownFile,
  type Look,
  type Move,
  type RelativePath,
  type Scan,
  type ScanEntry,
} from "./model.ts";

/** What `reconcile` needs to know beside disk and ledger. */
export interface ReconcileOptions {
  /** Names the rules in force; rows read under others are looked at again. */
  readonly rulesKey: number;
  /** Paths with work under way: left alone, the caller looks again when that ends. */
  readonly busy?: (path: RelativePath) => boolean;
  /** Whether to try parked files again. */
  readonly retryParked?: boolean;
}

/**
 * Compares disk with ledger. Pure; the order of the scan's entries does not matter. `known` holds each row in the
 * scan's scope, and may hold others (which are left alone); it is read once and not kept, so a ledger may stream a
 * million rows through.
 */
export function reconcile(scan: Scan, known: Iterable<KnownFile>, options: ReconcileOptions): Difference {
  const busy = options.busy ?? (() => false);
  const inScope = scopeTest(scan.scope);
  const unseen = unseenTest(scan);
  const entries = new Map<RelativePath, ScanEntry>();
  for (const entry of scan.entries) if (!busy(entry.path)) entries.set(entry.path, entry);
  const refusals = new Map(scan.refused.map(({ path, reason }) => [path, { path, reason }]));
  const skips = new Map(scan.skipped.map(({ entry, reason }) => [entry.path, { entry, reason }]));

  const changed: { entry: ScanEntry; known: KnownFile }[] = [];
  /** Held rows whose path has an entry. */
  const heldHere: KnownFile[] = [];
  const missing: KnownFile[] = [];
  const refused: Difference["refused"][number][] = [];
  const skipped: Difference["skipped"][number][] = [];
  let unchanged = 0;

  for (const row of known) {
    if (busy(row.path)) continue;
    const entry = entries.get(row.path);
    if (entry === undefined) {
      const refusal = refusals.get(row.path);
      if (refusal !== undefined && !isHeld(row)) {
        refusals.delete(row.path);
        refused.push({ ...refusal, known: row });
        continue;
      }
      const skip = isHeld(row) ? undefined : skips.get(row.path);
      if (skip !== undefined) {
        skips.delete(row.path);
        // A resource is not deleted because this version no longer takes the kind: a person is told instead.
        if (row.docId !== null) refused.push({ path: row.path, reason: skip.reason, known: row });
        else if (row.state !== "skipped" || row.rulesKey !== options.rulesKey)
          skipped.push({ ...skip, known: row });
        else unchanged += 1;
      } else if (refusal === undefined && inScope(row.path) && !unseen(row.path)) missing.push(row);
      continue;
    }
    if (isHeld(row)) {
      heldHere.push(row);
      continue;
    }
    entries.delete(row.path);
    if (isSettled(row, entry, options)) unchanged += 1;
    else changed.push({ entry, known: row });
  }
  // What is left in `entries` has no living row of its own, so a held row of that path takes it, whatever it holds now.
  const { back, restored, displaced } = placeHeld(heldHere, entries, options);
  const fresh = [...entries.values()];
  for (const refusal of refusals.values()) if (!busy(refusal.path)) refused.push(refusal);
  for (const skip of skips.values()) if (!busy(skip.entry.path)) skipped.push(skip);

  const pairs = pairByIdentity([...missing, ...displaced], changed, fresh);
  const looks: Look[] = restored.map(({ entry, known: row }) => ({ entry, known: row }));
  for (const { entry, known: row } of pairs.moves) looks.push({ entry, known: row, from: row.path });
  for (const { entry, known: row } of pairs.stayed) {
    if (isBlank(entry, row)) skipped.push({ entry, reason: EMPTY_FILE, known: row });
    else looks.push({ entry, known: row });
  }
  for (const entry of pairs.fresh) {
    if (isBlank(entry, undefined)) skipped.push({ entry, reason: EMPTY_FILE });
    else looks.push({ entry, known: undefined });
  }

  return {
    moves: pairs.moves,
    looks: looks.sort((a, b) => compare(a.entry.path, b.entry.path)),
    returned: back,
    gone: pairs.gone.filter((row) => row.docId !== null),
    forgotten: pairs.gone.filter((row) => row.docId === null),
    refused,
    skipped: skipped.sort((a, b) => compare(a.entry.path, b.entry.path)),
    unchanged,
  };
}

/**
 * Gives held rows the entries of their paths, which are taken out of `entries`. `back`: the file is as it was;
 * `restored`: it must be looked at. `displaced` get none: another file took the name, or a person agreed to the delete.
 */
function placeHeld(
  rows: readonly KnownFile[],
  entries: Map<RelativePath, ScanEntry>,
  { rulesKey }: ReconcileOptions,
): { back: KnownFile[]; restored: Move[]; displaced: KnownFile[] } {
  const back: KnownFile[] = [];
  const restored: Move[] = [];
  const displaced: KnownFile[] = [];
  const isBack = (row: KnownFile): boolean => {
    const entry = entries.get(row.path);
    return entry !== undefined && sameStat(entry, row) && row.rulesKey === rulesKey;
  };
  // A path may have several held rows. The one whose very file is back comes first, then the oldest.
  const inOrder = rows
    .map((row) => ({ row, isBack: isBack(row) }))
    .sort((a, b) => Number(b.isBack) - Number(a.isBack) || a.row.id - b.row.id);
  for (const { row, isBack: asItWas } of inOrder) {
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

/**
 * Whether a file is empty and always was, as far as the service knows. One that was emptied is sent all the same, or its
 * old text would be found for ever.
 */
export function isBlank(entry: ScanEntry, row: KnownFile | undefined): boolean {
  return entry.sizeBytes === 0 && (row === undefined || row.docId === null);
}

/** Whether the row agrees with the entry, so that there is nothing to read. */
function isSettled(row: KnownFile, entry: ScanEntry, options: ReconcileOptions): boolean {
  if (row.rulesKey !== options.rulesKey || !sameStat(entry, row)) return false;
  if (row.state === "parked") return options.retryParked !== true;
  return row.state === "agreed" || row.state === "failed" || row.state === "skipped";
}

function isHeld(row: KnownFile): boolean {
  return row.state === "held" || row.state === "doomed";
}

/** The change time too: it tells a write whose writer set the old modification time back. */
function sameStat(entry: ScanEntry, row: KnownFile): boolean {
  return sameIdentity(entry, row) && entry.ctimeMs === row.ctimeMs;
}

/** Whether a path lies in the scan's scope: at or below one of its paths. */
export function scopeTest(scope: readonly RelativePath[] | undefined): (path: RelativePath) => boolean {
  if (scope === undefined) return () => true;
  return underAny(new Set(scope));
}

/** Whether the scan could not look at a path, so that its absence means nothing. */
function unseenTest(scan: Scan): (path: RelativePath) => boolean {
  if (scan.unreadable.length === 0) return () => false;
  if (scan.unreadable.some(({ path }) => path === "")) return () => true;
  return underAny(new Set(scan.unreadable.map(({ path }) => path)));
}

function underAny(folders: ReadonlySet<string>): (path: RelativePath) => boolean {
  return (path) => {
    for (let end = path.length; end > 0; end = path.lastIndexOf("/", end - 1)) {
      if (folders.has(path.slice(0, end))) return true;
    }
    return false;
  };
}

function compare(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

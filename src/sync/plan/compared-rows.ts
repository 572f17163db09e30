import { sameIdentity } from "./moves.ts";
import { STEP_ITEMS, type Steps } from "../../lib/steps.ts";
import { openTextMap, type TextMap } from "./text-map.ts";
import type { KnownFile, RelativePath, Scan, ScanEntry, Skip } from "./model.ts";
import { scopeTest, unseenTest } from "./scope.ts";

/** Inputs of `reconcile` besides disk and ledger. */
export interface ReconcileOptions {
  /** Identifies the rules in force, or those for a path. Rows read under others are checked again. */
  readonly rulesKey: number | ((path: RelativePath) => number);
  /** Paths with work in flight. They are not compared; the caller checks them when that work ends. */
  readonly busy?: (path: RelativePath) => boolean;
  /** Whether to try parked files again: all, or those for which it returns true. */
  readonly retryParked?: boolean | ((path: RelativePath) => boolean);
}

/** The rows of a scan's scope, each compared with the entry at its own path. */
interface ComparedRows {
  /** Entries without a living row. */
  readonly entries: TextMap<ScanEntry>;
  /** Entries with work in flight. */
  readonly uncompared: readonly ScanEntry[];
  readonly refusals: Map<RelativePath, Scan["refused"][number]>;
  readonly skips: Map<RelativePath, Skip>;
  readonly changed: readonly { readonly entry: ScanEntry; readonly known: KnownFile }[];
  /** Held rows whose path has an entry. */
  readonly heldHere: readonly KnownFile[];
  /** Living rows whose path has a file that is not taken, with the reason: their own file, or another one in its place. */
  readonly blocked: readonly Blocked[];
  readonly missing: readonly KnownFile[];
  /** Rows with work in flight whose path has nothing. */
  readonly missingBusy: readonly KnownFile[];
  /** How many rows have a resource and a path that the scan could not read. */
  readonly hidden: number;
}

/** Compares each row with what the scan found at its path. */
export function* compareRows(
  scan: Scan,
  known: Iterable<KnownFile>,
  options: ReconcileOptions,
  busy: (path: RelativePath) => boolean,
): Steps<ComparedRows> {
  const inScope = scopeTest(scan.scope);
  const unseen = unseenTest(scan);
  const entries = openTextMap<ScanEntry>();
  const uncompared: ScanEntry[] = [];
  let items = 0;
  for (const entry of scan.entries) {
    if (++items % STEP_ITEMS === 0) yield;
    if (busy(entry.path)) uncompared.push(entry);
    else entries.set(entry.path, entry);
  }
  const refusals = new Map(scan.refused.map(({ path, reason }) => [path, { path, reason }]));
  const skips = new Map(scan.skipped.map((skip) => [skip.entry.path, skip]));
  const alone = new Set(uncompared.map(({ path }) => path));
  const changed: { entry: ScanEntry; known: KnownFile }[] = [];
  const heldHere: KnownFile[] = [];
  const blocked: Blocked[] = [];
  const missing: KnownFile[] = [];
  const missingBusy: KnownFile[] = [];
  let hidden = 0;

  for (const row of known) {
    if (++items % STEP_ITEMS === 0) yield;
    if (row.docId !== null && !isHeld(row) && unseen(row.path)) hidden += 1;
    if (busy(row.path)) {
      const isThere = alone.has(row.path) || refusals.has(row.path) || skips.has(row.path);
      if (row.docId !== null && !isHeld(row) && !isThere && inScope(row.path) && !unseen(row.path))
        missingBusy.push(row);
      continue;
    }
    const entry = entries.get(row.path);
    if (entry === undefined) {
      const refusal = refusals.get(row.path);
      const skip = skips.get(row.path);
      // A held row waits for a person, whatever has its path now.
      if (refusal !== undefined && !isHeld(row)) blocked.push({ row, refusal });
      else if (skip !== undefined && !isHeld(row)) blocked.push({ row, skip });
      else if (inScope(row.path) && !unseen(row.path)) missing.push(row);
    } else if (isHeld(row)) heldHere.push(row);
    else {
      entries.delete(row.path);
      if (!isSettled(row, entry, options)) changed.push({ entry, known: row });
    }
  }
  return {
    entries,
    uncompared,
    refusals,
    skips,
    changed,
    heldHere,
    blocked,
    missing,
    missingBusy,
    hidden,
  };
}

/** A living row whose path has a file that is not taken, with one of the two reasons. */
export interface Blocked {
  readonly row: KnownFile;
  readonly refusal?: { readonly reason: string };
  readonly skip?: Skip;
}

/** Reports whether the row agrees with the entry, so that there is nothing to read. */
function isSettled(row: KnownFile, entry: ScanEntry, options: ReconcileOptions): boolean {
  if (!sameStat(entry, row) || !hasRulesOf(row, options)) return false;
  if (row.state === "parked") return !retriesParked(row.path, options);
  return row.state === "agreed" || row.state === "failed" || row.state === "skipped";
}

/** Reports whether the row was read under the rules in force. */
export function hasRulesOf({ path, rulesKey: key }: KnownFile, { rulesKey }: ReconcileOptions): boolean {
  return key === (typeof rulesKey === "function" ? rulesKey(path) : rulesKey);
}

function retriesParked(path: RelativePath, { retryParked = false }: ReconcileOptions): boolean {
  return typeof retryParked === "function" ? retryParked(path) : retryParked;
}

/** Reports whether the delete of a row's resource waits for a person, or was agreed to. */
export function isHeld(row: KnownFile): boolean {
  return row.state === "held" || row.state === "doomed";
}

/** Compares the change time too: it reveals a write whose writer reset the modification time. */
export function sameStat(entry: ScanEntry, row: KnownFile): boolean {
  return sameIdentity(entry, row) && entry.ctimeMs === row.ctimeMs;
}

import { readMarker, type Marker } from "../plan/marker.ts";
import type { Version } from "../plan/versions.ts";

/**
 * Compares a service's list with ledger and disk, for one source. Pure. A first start, a lost ledger, the daily audit,
 * `verify` and its repair are uses of this function. The rows of docs/EXACTLY-ONCE.md are its branches, in their order. It gets
 * no items of other owners or collections, except those that the ledger knows.
 */

/** A resource as a list shows it. Only the id is certain; every other field may be missing. */
export interface Item {
  readonly docId: string;
  readonly description?: string | undefined;
  /** By the service's clock. */
  readonly createdMs?: number | undefined;
  /** The service still works on it: what it shows may be older than what was sent. */
  readonly isUnfinished?: boolean | undefined;
}

/** A file on disk that the rules select. */
export interface DiskFile {
  readonly path: string;
  readonly file: string;
  /** Undefined: not read. What its resource holds is then decided when it is. */
  readonly bytes: string | undefined;
}

/** A row of the ledger: a file whose resource this ledger made or adopted. */
export interface LedgerRow {
  readonly file: string;
  readonly docId: string;
  /** The version that the service acknowledged; undefined: a request is in flight, or nobody knows. */
  readonly acknowledged: string | undefined;
  /** What this ledger wrote into the resource's markers, acknowledged or not. */
  readonly sent: readonly Version[];
  /** Orders the acknowledgements of this ledger, near the time of day. */
  readonly acknowledgedMs: number;
  /** The path of a file that was gone: another one may have its name. */
  readonly gonePath?: string | undefined;
}

/** What earlier lists showed. The comparison returns the next one. */
export interface ListMemory {
  /** Number of the list. */
  readonly list: number;
  /** Resources that were seen with another version than the acknowledged one. */
  readonly stale: ReadonlyMap<string, Stale>;
  /** The list in which the resource of a tombstone was first seen. */
  readonly undead: ReadonlyMap<string, number>;
  /** The latest acknowledgement that a list has shown. */
  readonly visible: number;
  /** Resources whose lost write was sent once more. */
  readonly resent: ReadonlySet<string>;
}

/** How long a resource has been seen with another version than the acknowledged one. */
export interface Stale {
  readonly sinceMs: number;
  /** The first list that also showed a later change of this ledger. */
  readonly provenIn: number | undefined;
}

/** Nothing was listed before. */
export const NO_MEMORY: ListMemory = {
  list: 0,
  stale: new Map(),
  undead: new Map(),
  visible: 0,
  resent: new Set(),
};

export interface Situation {
  readonly source: string;
  readonly writer: string;
  /** A person agreed to take over what other installations wrote, and to leave damaged markers alone. */
  readonly isApproved: boolean;
  /** Resources with a damaged marker, or another installation's with a text of their own, that a person left alone. */
  readonly leftAlone: ReadonlySet<string>;
  readonly items: readonly Item[];
  readonly files: readonly DiskFile[];
  readonly rows: readonly LedgerRow[];
  /** Some files may be hidden: a part of the folder cannot be read. Then no resource counts as one without a file. */
  readonly isPartial: boolean;
  /** The source deletes nothing: of a file that is gone, one resource stays. */
  readonly keeps: boolean;
  /**
   * The ledger may be older than the service, or new: markers decide, and no row says which of several resources of a file
   * stays.
   */
  readonly isDistrusted: boolean;
  /**
   * The ledger was never compared: its rows are of files that were sent to learn the collection's id. Their resources give way to
   * those of before.
   */
  readonly isNew: boolean;
  /** Files of such a ledger of which nobody answered a create: the oldest of their resources may be from before. */
  readonly unanswered: ReadonlySet<string>;
  /** Resources that this ledger deleted. */
  readonly tombstones: ReadonlySet<string>;
  readonly memory: ListMemory;
  /** When the list was read, by this machine's clock. */
  readonly nowMs: number;
  /** How far the list may lag behind the service's answers; 0: not at all. */
  readonly lagMs: number;
}

/**
 * A list that still shows an older version after this many times the service's lag is believed although nothing else has
 * changed since.
 */
const STALE_LAGS = 10;

/** An item that shows no time counts as the newest. */
const UNKNOWN_MS = Number.MAX_SAFE_INTEGER;

/** Why a source sends nothing until a person decides. */
export type Hold =
  | { readonly kind: "damaged-marker"; readonly docIds: readonly string[] }
  | { readonly kind: "other-writer"; readonly writer: string; readonly docIds: readonly string[] };

/** What to do about one resource or one file. */
export type Verdict =
  /** The file's resource, with the bytes that the file has. */
  | { readonly kind: "same"; readonly path: string; readonly docId: string }
  /** The file's resource, with other bytes. */
  | { readonly kind: "update"; readonly path: string; readonly docId: string }
  /** The service acknowledged the file's bytes, and the list shows others: it may be stale. The next list decides. */
  | { readonly kind: "wait"; readonly path: string; readonly docId: string }
  /** The service lost a write that it acknowledged: it is sent once more. */
  | { readonly kind: "send-again"; readonly path: string; readonly docId: string }
  /** It lost that as well: reported, and not sent again. */
  | { readonly kind: "lost"; readonly path: string; readonly docId: string }
  /**
   * The ledger knows a resource that the list lacks. Only the resource's own 404 proves that it is gone. `instead`: another one
   * with the file's marker.
   */
  | { readonly kind: "ask"; readonly path: string; readonly docId: string; readonly instead?: string }
  /**
   * The file was renamed: the resource gets its title and description and keeps its id. `isUncertain`: its text too, for it may be a
   * copy that a person changed.
   */
  | {
      readonly kind: "move";
      readonly path: string;
      readonly docId: string;
      readonly isUncertain?: true;
    }
  /** No file has the resource. The brakes decide whether it goes now. */
  | { readonly kind: "delete"; readonly docId: string; readonly file: string }
  /** Its file may be there and cannot be seen. It is decided about when it can. */
  | { readonly kind: "hidden"; readonly docId: string; readonly file: string }
  /** A delete that the service lost, or that a restored backup undid. */
  | { readonly kind: "delete-again"; readonly docId: string }
  /** A second resource of a file. It is deleted if it is ours and the file's own has answered a read; otherwise reported. */
  | { readonly kind: "surplus"; readonly docId: string; readonly ofDocId: string; readonly isOurs: boolean }
  | { readonly kind: "create"; readonly path: string };

export interface Comparison {
  /** Not empty: nothing may be sent until a person decides. */
  readonly holds: readonly Hold[];
  /** Each path and each resource appears at most once. */
  readonly verdicts: readonly Verdict[];
  readonly memory: ListMemory;
}

/** A resource of this source: which file it is, and which version. */
interface OwnItem {
  readonly docId: string;
  readonly file: string;
  readonly bytes: string;
  readonly writer: string;
  readonly createdMs: number;
  /** The list shows an earlier name of the file, which this ledger sent. */
  readonly hasOldName: boolean;
}

/** Compares. The order of items, files and rows does not matter. */
export function compare(situation: Situation): Comparison {
  const rows = new Map(situation.rows.map((row) => [row.docId, row]));
  const { own, holds, tombstones } = sortItems(situation, rows);
  const list = situation.memory.list + 1;
  const undead = new Map(tombstones.map((docId) => [docId, situation.memory.undead.get(docId) ?? list]));
  const visible = visibleIn(situation, own, rows);
  if (holds.length > 0)
    return { holds, verdicts: [], memory: { ...situation.memory, list, undead, visible } };

  const verdicts: Verdict[] = [];
  for (const [docId, seen] of undead)
    if (seen < list || situation.lagMs === 0) verdicts.push({ kind: "delete-again", docId });

  const byFile = groupBy(own, ({ file }) => file);
  const shared = new Set([...byFile.keys()].filter((file) => (byFile.get(file)?.length ?? 0) > 1));
  // The row of a file that is there comes last.
  const rowOfFile = new Map(
    situation.rows.toSorted((a, b) => isGone(b) - isGone(a)).map((row) => [row.file, row]),
  );
  const listed = new Set(situation.items.map(({ docId }) => docId));
  const stale = new Map<string, Stale>();
  const resent = new Set<string>();
  const giveOwn = (file: DiskFile, item: OwnItem, row: LedgerRow | undefined): void => {
    const now = staleIn(situation, item, visible > (row?.acknowledgedMs ?? visible) ? list : undefined);
    const verdict = judge(situation, file, item, row, isCurrent(situation, now, list));
    verdicts.push(verdict);
    if (verdict.kind === "wait") stale.set(item.docId, now);
    if (verdict.kind === "wait" && situation.memory.resent.has(item.docId)) resent.add(item.docId);
    if (verdict.kind === "send-again" || verdict.kind === "lost") resent.add(item.docId);
  };
  const { claimed, missing, surplus, homeless } = claimFiles(situation, byFile, rowOfFile);
  for (const { file, item } of claimed) {
    const row = rowOfFile.get(file.file);
    if (row !== undefined && row.docId !== item.docId && !listed.has(row.docId))
      verdicts.push({ kind: "ask", path: file.path, docId: row.docId, instead: item.docId });
    else giveOwn(file, item, row);
  }

  // Surplus resources go first to files that have none: no file has lost them.
  const free = groupBy(
    [...surplus.map(({ item }) => item), ...(situation.isPartial ? [] : homeless)],
    ({ bytes }) => bytes,
  );
  const moved = new Set<string>();
  /** The resource that stays of a file that is gone: it went on under another name, or the source deletes nothing. */
  const staysOf = new Map<string, string>();
  for (const { file, probe } of missing) {
    const { path, bytes } = file;
    const row = rowOfFile.get(file.file);
    const unlisted = unlistedRow(row, listed);
    const item =
      unlisted === undefined && bytes !== undefined ? takeBefore(free.get(bytes) ?? [], probe) : undefined;
    if (unlisted !== undefined) verdicts.push({ kind: "ask", path, docId: unlisted.docId });
    else if (item !== undefined) {
      moved.add(item.docId);
      staysOf.set(item.file, item.docId);
      verdicts.push(moveOf(situation, path, item, shared));
      if (probe !== undefined) surplus.push({ item: probe, ofDocId: item.docId });
    } else if (probe !== undefined) giveOwn(file, probe, row);
    else verdicts.push({ kind: "create", path });
  }
  verdicts.push(...unlistedGone(situation, listed));
  for (const { item, ofDocId } of staying(situation, homeless, rows, staysOf)) {
    const { docId, file } = item;
    if (ofDocId !== undefined) surplus.push({ item, ofDocId });
    else verdicts.push({ kind: situation.isPartial ? "hidden" : "delete", docId, file });
  }
  for (const { item, ofDocId } of surplus) {
    if (moved.has(item.docId)) continue;
    const isOurs = item.writer === situation.writer || situation.isApproved;
    verdicts.push({ kind: "surplus", docId: item.docId, ofDocId, isOurs });
  }
  return { holds, verdicts, memory: { list, stale, undead, visible, resent } };
}

/** Asks for resources of gone files that the list lacks. */
function unlistedGone({ files, rows }: Situation, listed: ReadonlySet<string>): readonly Verdict[] {
  const present = new Set(files.map(({ file }) => file));
  return rows.flatMap(({ docId, file, gonePath }) =>
    gonePath === undefined || listed.has(docId) || present.has(file)
      ? []
      : [{ kind: "ask", path: gonePath, docId }],
  );
}

/**
 * Returns the resources of gone files, each with the one that stays of its file, if it is another. The ledger's go first. `staysOf`:
 * by file, what stays already.
 */
function staying(
  { keeps, isPartial }: Situation,
  homeless: readonly OwnItem[],
  rows: ReadonlyMap<string, LedgerRow>,
  staysOf: Map<string, string>,
): readonly { readonly item: OwnItem; readonly ofDocId: string | undefined }[] {
  const isKnown = ({ docId }: OwnItem): number => Number(rows.has(docId));
  return homeless
    .toSorted((a, b) => isKnown(b) - isKnown(a))
    .map((item) => {
      const ofDocId = staysOf.get(item.file);
      if (keeps && !isPartial) staysOf.set(item.file, ofDocId ?? item.docId);
      return { item, ofDocId };
    });
}

/**
 * Returns what a comparison that was not applied leaves for the next one: the lost writes that it found were not sent again, and
 * need no further proof.
 */
export function memoryOfUnapplied(before: ListMemory, { verdicts, memory }: Comparison): ListMemory {
  const unsent = new Set(verdicts.flatMap((each) => (each.kind === "send-again" ? [each.docId] : [])));
  const proven = [...before.stale].filter(([docId]) => unsent.has(docId));
  const resent = new Set([...memory.resent].filter((docId) => !unsent.has(docId)));
  return { ...memory, stale: new Map([...memory.stale, ...proven]), resent };
}

/** Which resources name which file. */
interface Claims {
  /** Files with the resource that is theirs. */
  readonly claimed: readonly { readonly file: DiskFile; readonly item: OwnItem }[];
  /** Files that no resource names, except one with which this ledger has just probed the service. */
  readonly missing: readonly { readonly file: DiskFile; readonly probe: OwnItem | undefined }[];
  /** Further resources of a file. */
  readonly surplus: { readonly item: OwnItem; readonly ofDocId: string }[];
  /** Resources that name no file there is, oldest first. */
  readonly homeless: readonly OwnItem[];
}

/** Gives each file the best of the resources that name it. */
function claimFiles(
  { files, isDistrusted, isNew, unanswered }: Situation,
  byFile: ReadonlyMap<string, readonly OwnItem[]>,
  rowOfFile: ReadonlyMap<string, LedgerRow>,
): Claims {
  const claimed: { readonly file: DiskFile; readonly item: OwnItem }[] = [];
  const missing: { readonly file: DiskFile; readonly probe: OwnItem | undefined }[] = [];
  const surplus: { readonly item: OwnItem; readonly ofDocId: string }[] = [];
  const left = new Map(byFile);
  for (const file of files.toSorted((a, b) => (a.path < b.path ? -1 : 1))) {
    const row = rowOfFile.get(file.file);
    const items = left.get(file.file) ?? [];
    left.delete(file.file);
    const known = isDistrusted ? undefined : row?.docId;
    const probe = isNew ? items.find(({ docId }) => docId === row?.docId) : undefined;
    const claims = items.toSorted(
      unanswered.has(file.file) ? byAge : (a, b) => compareClaims(a, b, file, known),
    );
    const first = claims.find((item) => item !== probe && isBefore(item, probe));
    const kept = first ?? probe;
    for (const item of claims) if (item !== kept) surplus.push({ item, ofDocId: kept?.docId ?? "" });
    if (first === undefined) missing.push({ file, probe });
    else claimed.push({ file, item: first });
  }
  return { claimed, missing, surplus, homeless: [...left.values()].flat().toSorted(byAge) };
}

/**
 * Returns a row whose resource the list lacks. One that the list shows under another file's marker was renamed since this ledger
 * was copied: the row's file has none.
 */
function unlistedRow(row: LedgerRow | undefined, listed: ReadonlySet<string>): LedgerRow | undefined {
  return row === undefined || listed.has(row.docId) ? undefined : row;
}

/** A ledger that is not new knows renamed files, and those resources need no decision here. `shared`: files that several items name. */
function moveOf(
  { isDistrusted }: Situation,
  path: string,
  { docId, file }: OwnItem,
  shared: ReadonlySet<string>,
): Verdict {
  const isUncertain = !isDistrusted || shared.has(file);
  return { kind: "move", path, docId, ...(isUncertain && { isUncertain }) };
}

/** Decides of each item whose it is. */
function sortItems(
  situation: Situation,
  rows: ReadonlyMap<string, LedgerRow>,
): {
  readonly own: readonly OwnItem[];
  readonly holds: readonly Hold[];
  readonly tombstones: readonly string[];
} {
  const own: OwnItem[] = [];
  const tombstones: string[] = [];
  const damaged: string[] = [];
  const byWriter = new Map<string, string[]>();
  for (const item of situation.items) {
    const { docId, createdMs = UNKNOWN_MS } = item;
    const row = rows.get(docId);
    const reading = readMarker(item.description);
    if (situation.tombstones.has(docId)) tombstones.push(docId);
    else if (row === undefined && reading.kind === "none") continue;
    else if (row !== undefined && (reading.kind !== "whole" || reading.marker.source !== situation.source)) {
      const bytes = row.acknowledged ?? "";
      own.push({ ...row, bytes, writer: situation.writer, createdMs, hasOldName: false });
    } else if (reading.kind === "damaged") {
      if (!situation.leftAlone.has(docId)) damaged.push(docId);
    } else if (reading.kind === "whole" && reading.marker.source === situation.source) {
      const { marker } = reading;
      if (isStranger(situation, marker, row) && !situation.leftAlone.has(docId))
        byWriter.set(marker.writer, [...(byWriter.get(marker.writer) ?? []), docId]);
      else {
        // A marker that this ledger sent is what it knows, or older: the ledger decides. Another one is newer than the
        // ledger, which was lost or restored from a copy: the marker decides, unless the service still works on
        // what that ledger sent last.
        const hasOldName =
          row !== undefined &&
          row.file !== marker.file &&
          hasSent(row, marker) &&
          (!situation.isDistrusted || isBeingRenamed(situation, item, row));
        const named = hasOldName ? row.file : marker.file;
        own.push({ ...marker, file: named, docId, createdMs, hasOldName });
      }
    }
  }
  const holds: Hold[] = [...byWriter].map(([writer, docIds]) => ({ kind: "other-writer", writer, docIds }));
  if (damaged.length > 0 && !situation.isApproved) holds.push({ kind: "damaged-marker", docIds: damaged });
  return { own, holds, tombstones };
}

/** Reports whether the service may still work on the request by which an old ledger gave a resource its file's name. */
function isBeingRenamed({ files }: Situation, { isUnfinished }: Item, row: LedgerRow): boolean {
  return isUnfinished === true && files.some(({ file }) => file === row.file);
}

function isGone({ gonePath }: LedgerRow): number {
  return Number(gonePath !== undefined);
}

/** Reports whether another installation wrote what this ledger never sent. */
function isStranger({ writer, isApproved }: Situation, marker: Marker, row: LedgerRow | undefined): boolean {
  if (marker.writer === writer || isApproved) return false;
  return row === undefined || !hasSent(row, marker);
}

function hasSent({ sent }: LedgerRow, { file, bytes }: Version): boolean {
  return sent.some((each) => each.file === file && each.bytes === bytes);
}

/** Of several items with one file's marker: the ledger's, else one with the file's bytes, else the oldest. */
function compareClaims(a: OwnItem, b: OwnItem, file: DiskFile, known: string | undefined): number {
  const rank = (item: OwnItem): number => (item.docId === known ? 0 : item.bytes === file.bytes ? 1 : 2);
  return rank(a) - rank(b) || byAge(a, b);
}

/** Reports whether a resource was made before one that was sent to learn the collection's id, which then gives way to it. */
function isBefore({ createdMs }: OwnItem, probe: OwnItem | undefined): boolean {
  return probe === undefined || createdMs <= probe.createdMs;
}

/** Takes the first resource out of a list; beside one that was sent to learn the collection's id, the first of before. */
function takeBefore(items: OwnItem[], probe: OwnItem | undefined): OwnItem | undefined {
  const at = items.findIndex((item) => isBefore(item, probe));
  return at === -1 ? undefined : items.splice(at, 1)[0];
}

/** Returns how long a resource counts as stale if this list shows it so. `provenIn`: this list, if it shows a later change. */
function staleIn({ memory, nowMs }: Situation, { docId }: OwnItem, provenIn: number | undefined): Stale {
  const before = memory.stale.get(docId);
  return { sinceMs: before?.sinceMs ?? nowMs, provenIn: before?.provenIn ?? provenIn };
}

/**
 * Reports whether the list shows a resource as it is: it never lags, an earlier list showed a later change of this ledger, or
 * the older version has been shown for far longer than any lag.
 */
function isCurrent({ lagMs, nowMs }: Situation, { sinceMs, provenIn }: Stale, list: number): boolean {
  if (lagMs === 0 || (provenIn !== undefined && provenIn < list)) return true;
  return nowMs - sinceMs >= STALE_LAGS * lagMs;
}

/**
 * Decides about a file's own resource. `isListCurrent`: the list shows the resource as it is, for an earlier one showed a later
 * change of this ledger.
 */
function judge(
  { memory, isDistrusted }: Situation,
  file: DiskFile,
  item: OwnItem,
  row: LedgerRow | undefined,
  isListCurrent: boolean,
): Verdict {
  const names = { path: file.path, docId: item.docId };
  if (item.bytes === file.bytes && !item.hasOldName) return { kind: "same", ...names };
  const isAcknowledged =
    !isDistrusted && row?.docId === item.docId && file.bytes !== undefined && row.acknowledged === file.bytes;
  if (!isAcknowledged) return { kind: "update", ...names };
  if (!isListCurrent) return { kind: "wait", ...names };
  return { kind: memory.resent.has(item.docId) ? "lost" : "send-again", ...names };
}

/** Returns the latest acknowledged change that this list or an earlier one shows. */
function visibleIn(
  { memory }: Situation,
  own: readonly OwnItem[],
  rows: ReadonlyMap<string, LedgerRow>,
): number {
  const shown = own.map(({ docId, bytes }) => {
    const row = rows.get(docId);
    return row?.acknowledged === bytes ? row.acknowledgedMs : 0;
  });
  return shown.reduce((latest, each) => Math.max(latest, each), memory.visible);
}

function groupBy(items: readonly OwnItem[], keyOf: (item: OwnItem) => string): Map<string, OwnItem[]> {
  const groups = new Map<string, OwnItem[]>();
  for (const item of items) {
    const group = groups.get(keyOf(item));
    if (group === undefined) groups.set(keyOf(item), [item]);
    else group.push(item);
  }
  return groups;
}

function byAge(a: OwnItem, b: OwnItem): number {
  return a.createdMs - b.createdMs || byId(a, b);
}

function byId(a: { readonly docId: string }, b: { readonly docId: string }): number {
  return a.docId < b.docId ? -1 : 1;
}

import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { type NumberSet } from "../../lib/number-set.ts";
import type { AcknowledgedRow } from "../ledger/files/rows.ts";
import { isSameRoot } from "../plan/brakes.ts";
import { sameStat } from "../plan/compared-rows.ts";
import { bytesTag, fileTag, markedDescription, readMarker } from "../plan/marker.ts";
import type { RelativePath, Scan, ScanEntry } from "../plan/model.ts";
import { unseenTest } from "../plan/scope.ts";
import { acknowledgedTag, fileOf, sentBefore, versionsOf } from "../plan/versions.ts";
import { readDocument } from "../scan/read/read.ts";
import { scanSource } from "../scan/scan.ts";
import type { DiskFile, Item, LedgerRow, Situation } from "./compare.ts";
import {
  type Altered,
  gatherListed,
  type GatherContext,
  type GatherOptions,
  type IdentitySource,
  keepsAll,
  type Listed,
  namedBy,
  PAGE_ROWS,
} from "./listed.ts";

/** What list, ledger and disk show of one source. */
export interface Gathered extends Omit<Listed, "items" | "seen" | "named"> {
  /** What must be decided: neither what is as its row says, nor what belongs to others. */
  readonly situation: Omit<Situation, "memory" | "isApproved" | "nowMs" | "lagMs">;
  /** The descriptions of the situation's items. */
  readonly descriptions: ReadonlyMap<string, string | undefined>;
  /** The rows of the situation. */
  readonly rows: ReadonlyMap<string, AcknowledgedRow>;
  readonly entries: ReadonlyMap<RelativePath, ScanEntry>;
  /** Reports whether a path could not be looked at. */
  readonly isUnseen: (path: RelativePath) => boolean;
}

/** Files read between two turns of the loop. */
const READ_AT_ONCE = 32;

/**
 * Reads list, ledger and disk for a comparison. The list is streamed, and what is as its row says is counted and forgotten, so that
 * a million resources are ordinary. Sends nothing but the list request, and writes nothing. Returns undefined if the
 * collection's id is unknown. Throws `list_refused`.
 */
export async function gather(
  context: GatherContext,
  source: IdentitySource,
  options: GatherOptions,
): Promise<Gathered | undefined> {
  const { ledger } = context;
  const found = await gatherListed(context, source, options);
  if (found === undefined) return undefined;
  const { listed, rows, recent, startedMs } = found;
  const scan = await scanSource(source.root, source.rules, { signal: options.signal });
  const all = await filesOf(context, source, scan, listed, rows, options.signal);
  const files = all.filter(({ file }) => !recent.files.has(file));
  const items = [...listed.items, ...shownItems(source, rows, listed.seen)].filter(
    ({ docId, description }) => {
      const reading = readMarker(description);
      return (
        !recent.docIds.has(docId) && !(reading.kind === "whole" && recent.files.has(reading.marker.file))
      );
    },
  );
  const isNew = ledger.contacts.isNew(source.id);
  const open = [...ledger.intents.creates(source.id), ...ledger.intents.doubts(source.id)];
  const altered = listed.altered.filter(({ row }) => row.acknowledgedMs <= startedMs);
  return {
    ...listed,
    situation: {
      source: source.signature.source,
      writer: source.signature.writer,
      items,
      files,
      rows: [...rows.values()].map(ledgerRowOf),
      leftAlone: ledger.contacts.leftAlone(source.id),
      // Another folder in the source's place hides its files. What it lacks halts the source.
      isPartial: scan.root === undefined || isOtherRoot(context, source, scan) || scan.unreadable.length > 0,
      keeps: keepsAll(source),
      isDistrusted: !ledger.contacts.isAdopted(source.id),
      isNew,
      unanswered: new Set(isNew ? open.map(({ path }) => fileTag(path)) : []),
      tombstones: new Set(
        listed.items.flatMap(({ docId }) => (ledger.intents.isDeleted(docId) ? [docId] : [])),
      ),
    },
    descriptions: new Map(items.map(({ docId, description }) => [docId, description])),
    altered: keepsMarkers(context, listed) ? altered : altered.flatMap(withoutNames),
    rows,
    entries: new Map(scan.entries.map((entry) => [entry.path, entry])),
    isUnseen: unseenTest(scan),
  };
}

function isOtherRoot({ ledger }: GatherContext, { id }: IdentitySource, { root }: Scan): boolean {
  const { root: before } = ledger.sources.get(id);
  return before !== undefined && !isSameRoot(before, root);
}

/** Reports whether the service keeps markers, as far as it has shown. */
function keepsMarkers({ ledger }: GatherContext, { shown, unmarked }: Listed): boolean {
  return shown > unmarked || (ledger.contacts.keepsMarkers() ?? unmarked === 0);
}

/** Titles and descriptions that a service does not keep were not changed by anybody. */
function withoutNames(each: Altered): readonly Altered[] {
  const alterations = each.alterations.filter((alteration) => alteration !== "title or description");
  return alterations.length === 0 ? [] : [{ ...each, alterations }];
}

/** Returns the items of rows that need a decision only because another resource names their file. */
function shownItems(
  { signature }: IdentitySource,
  rows: ReadonlyMap<string, AcknowledgedRow>,
  seen: NumberSet,
): readonly Item[] {
  return [...rows.values()]
    .filter(({ id }) => seen.has(id))
    .map((row) => {
      const marker = { ...signature, file: fileOf(row), bytes: acknowledgedTag(row) ?? "" };
      return { docId: row.docId, description: markedDescription("", marker) };
    });
}

function ledgerRowOf(row: AcknowledgedRow): LedgerRow {
  const { docId, state, acknowledgedMs } = row;
  const acknowledged = state === "agreed" ? acknowledgedTag(row) : undefined;
  const sent = versionsOf(sentBefore(row));
  const gonePath = state === "held" ? row.path : undefined;
  return { file: fileOf(row), docId, acknowledged, sent, acknowledgedMs, gonePath };
}

/**
 * Returns the files that need a decision: those that an item names, those with one of the rows, and those without a row. A file
 * that cannot be taken has its resource nevertheless. The bytes are read only where they decide which resource is a file's.
 */
async function filesOf(
  { ledger }: GatherContext,
  { id, root, rules }: IdentitySource,
  scan: Scan,
  { items, named, seen }: Listed,
  rows: ReadonlyMap<string, AcknowledgedRow>,
  signal: AbortSignal,
): Promise<readonly DiskFile[]> {
  const rowPaths = new Set([...rows.values()].map(({ path }) => path));
  const contested = contestedFiles(items);
  const isNamed = namedBy(named);
  const files = new Map<string, DiskFile>();
  const unread: { readonly file: string; readonly entry: ScanEntry }[] = [];
  const add = (path: RelativePath, bytes: string | undefined): string | undefined => {
    const file = fileTag(path);
    // Of two paths with one tag, the first is synced.
    if (files.has(file)) return undefined;
    files.set(file, { path, file, bytes });
    return file;
  };
  for (const [index, entry] of scan.entries.entries()) {
    const { path } = entry;
    const known = ledger.files.living(id, path);
    const isSettled =
      known !== undefined && seen.has(known.id) && !rowPaths.has(path) && !isNamed(() => fileTag(path));
    if (!isSettled) {
      const row = known === undefined || known.docId === null ? undefined : rows.get(known.docId);
      const isAsKnown = known?.state === "agreed" && row !== undefined && sameStat(entry, known);
      const bytes = isAsKnown ? acknowledgedTag(row) : undefined;
      const file = add(path, bytes);
      const isNew = file !== undefined && known === undefined && !named.has(file);
      if (isNew || (file !== undefined && bytes === undefined && contested.has(file)))
        unread.push({ file, entry });
    }
    if (index % PAGE_ROWS === PAGE_ROWS - 1) await nextTurn();
  }
  // What cannot be looked at is a file or a folder. No resource names a folder.
  for (const { path } of [...scan.refused, ...scan.unreadable]) add(path, undefined);
  for (const { entry } of scan.skipped) add(entry.path, undefined);
  const isHomeless = ({ docId, description }: Item): boolean => {
    const reading = readMarker(description);
    return !rows.has(docId) && reading.kind === "whole" && !files.has(reading.marker.file);
  };
  if (contested.size === 0 && !items.some(isHomeless)) return [...files.values()];
  for (const [index, { file, entry }] of unread.entries()) {
    const read = await readDocument(join(root, entry.path), entry, rules, { signal });
    if (read.kind === "document") {
      const { hash, recipe } = read.document;
      files.set(file, { path: entry.path, file, bytes: bytesTag(hash, recipe.extractorVersion) });
    }
    if (index % READ_AT_ONCE === READ_AT_ONCE - 1) await nextTurn();
  }
  return [...files.values()];
}

/** Returns the files that several items name. */
function contestedFiles(items: readonly Item[]): ReadonlySet<string> {
  const named = new Set<string>();
  const contested = new Set<string>();
  for (const { description } of items) {
    const reading = readMarker(description);
    if (reading.kind !== "whole") continue;
    const { file } = reading.marker;
    if (named.has(file)) contested.add(file);
    named.add(file);
  }
  return contested;
}

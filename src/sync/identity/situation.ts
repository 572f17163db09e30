import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { openNumberSet, type NumberSet } from "../../lib/number-set.ts";
import type { ResourceRecord } from "../../wire/resource.ts";
import type { ActionSource } from "../send/context.ts";
import type { Scope } from "../ledger/contacts.ts";
import type { AcknowledgedRow } from "../ledger/files/rows.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { isSameRoot } from "../plan/brakes.ts";
import { alterationsOf, isAsStored, type Alteration } from "../plan/alterations.ts";
import { sameStat } from "../plan/compared-rows.ts";
import { bytesTag, fileTag, markedDescription, readMarker } from "../plan/marker.ts";
import type { ListedResource, RelativePath, Scan, ScanEntry } from "../plan/model.ts";
import { unseenTest } from "../plan/scope.ts";
import { acknowledgedTag, fileOf, sentBefore, versionsOf } from "../plan/versions.ts";
import { readDocument } from "../scan/read/read.ts";
import { scanSource } from "../scan/scan.ts";
import type { DiskFile, Item, LedgerRow, Situation } from "./compare.ts";
import { type ListContext, readList } from "./list.ts";
import { resourceOf } from "./resource.ts";

/** A source whose resources are compared. */
export type IdentitySource = Pick<ActionSource, "id" | "root" | "rules" | "signature">;

/** What list, ledger and disk show of one source. */
export interface Gathered {
  /** What must be decided: neither what is as its row says, nor what belongs to others. */
  readonly situation: Omit<Situation, "memory" | "isApproved" | "nowMs" | "lagMs">;
  /** The descriptions of the situation's items. */
  readonly descriptions: ReadonlyMap<string, string | undefined>;
  /** The resources of the situation, as the list shows them. */
  readonly resources: ReadonlyMap<string, FoundResource>;
  /** The rows of the situation. */
  readonly rows: ReadonlyMap<string, AcknowledgedRow>;
  readonly entries: ReadonlyMap<RelativePath, ScanEntry>;
  /** Reports whether a path could not be looked at. */
  readonly isUnseen: (path: RelativePath) => boolean;
  /** Rows whose resource has the row's version, and differs otherwise. */
  readonly altered: readonly Altered[];
  /** Rows in agreement that the list shows. */
  readonly shown: number;
  /** How many of these have no marker. */
  readonly unmarked: number;
  /** Resources of the source's owner that are nobody's, and the first of them. */
  readonly foreign: { readonly count: number; readonly first: readonly { docId: string; title: string }[] };
  /** Ids of all other listed resources without a row, to compare two lists. */
  readonly unowned: ReadonlySet<string>;
  /** Ids of all listed resources without a row whose marker names another source, which may be sending. */
  readonly elsewhere: ReadonlySet<string>;
  readonly isPaged: boolean;
}

/** A resource, and the owner and collection in whose list it is. */
export interface FoundResource extends ListedResource {
  readonly scope: Scope;
}

/** A resource that somebody changed at the service, or that the service stores in a form of its own. */
export interface Altered {
  readonly row: AcknowledgedRow;
  readonly alterations: readonly Alteration[];
  readonly resource: ListedResource;
  /** Nobody changed it since it was sent. */
  readonly isAsStored: boolean;
  /** Its description has no marker of the source. */
  readonly isUnmarked: boolean;
}

/** Dependencies of gathering. */
export type GatherContext = ListContext & {
  readonly ledger: Pick<Ledger, "contacts" | "files" | "flush" | "intents" | "sources">;
};

export interface GatherOptions {
  readonly signal: AbortSignal;
  /** Sends no limit, for services that truncate a list at the limit without notice. */
  readonly isUnlimited?: boolean;
}

/** Rows read between two turns of the loop. */
const PAGE_ROWS = 1000;
/** Number of foreign resources that are named. */
const FOREIGN_NAMED = 20;
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

/** Reads list and ledger alone. */
export async function gatherListed(
  context: GatherContext,
  source: IdentitySource,
  options: GatherOptions,
): Promise<ListedRows | undefined> {
  const { ledger } = context;
  ledger.flush();
  const startedMs = ledger.files.latestMs();
  const listed = await readScopes(context, source, options);
  if (listed === undefined) return undefined;
  const { rows, recent } = await rowsOf(context, source, listed, startedMs, options.signal);
  const isMissing = ({ id, docId }: AcknowledgedRow): boolean =>
    !listed.seen.has(id) && !listed.resources.has(docId);
  return { listed, rows, recent, startedMs, missing: [...rows.values()].filter(isMissing) };
}

function isOtherRoot({ ledger }: GatherContext, { id }: IdentitySource, { root }: Scan): boolean {
  const { root: before } = ledger.sources.get(id);
  return before !== undefined && !isSameRoot(before, root);
}

/** Reports whether documents stay when their files are gone. */
function keepsAll({ rules }: IdentitySource): boolean {
  return rules.source.deletes === "never";
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

/** What a list shows of one source. */
interface Listed extends Omit<Gathered, "situation" | "descriptions" | "rows" | "entries" | "isUnseen"> {
  readonly items: readonly Item[];
  /** Rows whose resource needs no decision. */
  readonly seen: NumberSet;
  /** Tags of the files that the items name. */
  readonly named: ReadonlySet<string>;
}

/** What list and ledger show of one source. */
interface ListedRows {
  readonly listed: Listed;
  /** Rows that need a decision, by resource. */
  readonly rows: ReadonlyMap<string, AcknowledgedRow>;
  /** Those of them whose resource the list lacks. */
  readonly missing: readonly AcknowledgedRow[];
  readonly recent: Recent;
  /** The latest acknowledgement before the list began. */
  readonly startedMs: number;
}

/** Reads the lists of every owner and collection that the source ever wrote to. */
async function readScopes(
  context: GatherContext,
  source: IdentitySource,
  options: GatherOptions,
): Promise<Listed | undefined> {
  const { collection: tier, ownerId } = source.rules.source;
  const isCurrent = (scope: Scope): boolean => scope.tier === tier && scope.ownerId === ownerId;
  const former = context.ledger.contacts.scopes(source.id).filter((scope) => !isCurrent(scope));
  const all: Listed[] = [];
  for (const scope of [{ tier, ownerId }, ...former]) {
    let collector = openCollector(context, source, scope, isCurrent(scope));
    const begin = (): ((record: ResourceRecord) => void) => {
      collector = openCollector(context, source, scope, isCurrent(scope));
      return collector.see;
    };
    const read = await readList(context, scope, begin, options);
    if (read !== undefined) all.push(collector.finish(read.isPaged));
    else if (isCurrent(scope)) return undefined;
  }
  return all.reduce(joined);
}

function joined(a: Listed, b: Listed): Listed {
  return {
    items: [...a.items, ...b.items],
    seen: { add: (id) => a.seen.add(id), has: (id) => a.seen.has(id) || b.seen.has(id) },
    named: new Set([...a.named, ...b.named]),
    resources: new Map([...a.resources, ...b.resources]),
    altered: [...a.altered, ...b.altered],
    shown: a.shown + b.shown,
    unmarked: a.unmarked + b.unmarked,
    foreign: a.foreign,
    unowned: new Set([...a.unowned, ...b.unowned]),
    elsewhere: new Set([...a.elsewhere, ...b.elsewhere]),
    isPaged: a.isPaged || b.isPaged,
  };
}

/** Collects one list. */
function openCollector(
  context: GatherContext,
  source: IdentitySource,
  scope: Scope,
  isCurrent: boolean,
): { readonly see: (record: ResourceRecord) => void; finish(isPaged: boolean): Listed } {
  const { ledger } = context;
  const { id, signature } = source;
  const isDistrusted = !ledger.contacts.isAdopted(id);
  const gone = new Set<string>();
  const items: Item[] = [];
  const seen = openNumberSet();
  const named = new Set<string>();
  const resources = new Map<string, FoundResource>();
  const altered: Altered[] = [];
  const unowned = new Set<string>();
  const elsewhere = new Set<string>();
  const first: { docId: string; title: string }[] = [];
  let shown = 0;
  let unmarked = 0;
  let foreign = 0;
  const keep = (record: ResourceRecord, file: string | undefined): void => {
    const resource = { ...resourceOf(record), scope };
    const { createdMs, isUnfinished } = resource;
    items.push({ docId: record._id, description: record.description, createdMs, isUnfinished });
    resources.set(record._id, resource);
    if (file !== undefined) named.add(file);
  };
  return {
    see: (record) => {
      const row = ledger.files.acknowledged(record._id);
      const reading = readMarker(record.description);
      const marker =
        reading.kind === "whole" && reading.marker.source === signature.source ? reading.marker : undefined;
      // A former source of this id has it: its folder was copied, or another one took its place in the configuration.
      const isFormer =
        row !== undefined &&
        row.source !== id &&
        marker !== undefined &&
        !ledger.sources.get(row.source).active;
      if (row !== undefined && row.source !== id && !isFormer) return;
      if (row !== undefined && !isFormer) {
        if (isLeaving(source, row)) {
          seen.add(row.id);
          return;
        }
        const file = fileOf(row);
        // The name of a file that is gone may be another one's, and several of its resources may have a row.
        const isOnly = (): boolean => !gone.has(file) && ledger.files.living(id, row.path) === undefined;
        const isAsSaid =
          (row.state === "agreed" || (row.state === "held" && isOnly())) &&
          marker?.file === file &&
          marker.bytes === acknowledgedTag(row) &&
          marker.writer === signature.writer;
        if (row.state === "held") gone.add(file);
        const isUnmarked = row.state === "agreed" && marker === undefined;
        if ((!isAsSaid && !isUnmarked) || (isAsSaid && isDistrusted)) {
          keep(record, marker?.file ?? file);
          return;
        }
        seen.add(row.id);
        shown += 1;
        unmarked += Number(isUnmarked);
        const resource = resourceOf(record);
        const alterations = alterationsOf(row, resource, isAsSaid);
        if (alterations.length > 0) {
          const asStored = isAsStored(row.storedMs, resource);
          altered.push({ row, alterations, resource, isAsStored: asStored, isUnmarked });
        }
        return;
      }
      (reading.kind === "whole" && marker === undefined ? elsewhere : unowned).add(record._id);
      const isDeleted = ledger.intents.isDeleted(record._id);
      if (!isDeleted && isOthers(context, scope, record)) return;
      if (marker !== undefined || reading.kind === "damaged" || isDeleted) {
        keep(record, marker?.file);
        return;
      }
      if (!isCurrent || reading.kind === "whole") return;
      foreign += 1;
      if (first.length < FOREIGN_NAMED) first.push({ docId: record._id, title: record.title });
    },
    finish: (isPaged) => ({
      items,
      seen,
      named,
      resources,
      altered,
      shown,
      unmarked,
      foreign: { count: foreign, first },
      unowned,
      elsewhere,
      isPaged,
    }),
  };
}

/** Reports whether a row's file is gone and its resource goes, perhaps when a person agrees: that is no question of identity. */
function isLeaving(source: IdentitySource, { state }: Pick<AcknowledgedRow, "state">): boolean {
  return state === "doomed" || (state === "held" && !keepsAll(source));
}

/** Reports whether a record names another owner or collection than its list was read for. A field that it lacks proves nothing. */
function isOthers({ collections }: GatherContext, { tier, ownerId }: Scope, record: ResourceRecord): boolean {
  const expectedId = collections.id(tier);
  const { ownerId: foundOwner = ownerId, collectionId = expectedId } = record;
  return foundOwner !== ownerId || (expectedId !== undefined && collectionId !== expectedId);
}

/** What was acknowledged since a list began: it decides nothing about these. */
interface Recent {
  readonly docIds: ReadonlySet<string>;
  /** Tags of their files. */
  readonly files: ReadonlySet<string>;
}

/** Returns the rows that need a decision, by resource. */
async function rowsOf(
  { ledger }: GatherContext,
  source: IdentitySource,
  { seen, named }: Listed,
  startedMs: number,
  signal: AbortSignal,
): Promise<{ readonly rows: ReadonlyMap<string, AcknowledgedRow>; readonly recent: Recent }> {
  const rows = new Map<string, AcknowledgedRow>();
  const recent = { docIds: new Set<string>(), files: new Set<string>() };
  const isNamed = namedBy(named);
  let afterId = 0;
  for (;;) {
    signal.throwIfAborted();
    ledger.flush();
    const page = ledger.files.page(source.id, afterId, PAGE_ROWS);
    for (const row of page) {
      if (isLeaving(source, row)) continue;
      if (row.acknowledgedMs > startedMs) {
        recent.docIds.add(row.docId);
        recent.files.add(fileTag(row.path));
      } else if (!seen.has(row.id) || isNamed(() => fileOf(row))) rows.set(row.docId, row);
    }
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE_ROWS) return { rows, recent };
    afterId = last.id;
    await nextTurn();
  }
}

/** Returns whether an item names a file. Of a list as the rows say, none does, and no tag is computed. */
function namedBy(named: ReadonlySet<string>): (file: () => string) => boolean {
  return (file) => named.size > 0 && named.has(file());
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

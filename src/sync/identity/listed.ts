import { setImmediate as nextTurn } from "node:timers/promises";
import { openNumberSet, type NumberSet } from "../../lib/number-set.ts";
import type { ResourceRecord } from "../../wire/resource.ts";
import type { ActionSource } from "../send/context.ts";
import type { Scope } from "../ledger/contacts.ts";
import type { AcknowledgedRow } from "../ledger/files/rows.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { alterationsOf, isAsStored, type Alteration } from "../plan/alterations.ts";
import { fileTag, readMarker } from "../plan/marker.ts";
import type { ListedResource } from "../plan/model.ts";
import { acknowledgedTag, fileOf } from "../plan/versions.ts";
import type { Item } from "./compare.ts";
import { type ListContext, readList } from "./list.ts";
import { resourceOf } from "./resource.ts";

/** A source whose resources are compared. */
export type IdentitySource = Pick<ActionSource, "id" | "root" | "rules" | "signature">;

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
export const PAGE_ROWS = 1000;
/** Number of foreign resources that are named. */
const FOREIGN_NAMED = 20;
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

/** Reports whether documents stay when their files are gone. */
export function keepsAll({ rules }: IdentitySource): boolean {
  return rules.source.deletes === "never";
}

/** What a list shows of one source. */
export interface Listed {
  readonly items: readonly Item[];
  /** The resources that must be decided about. */
  readonly resources: ReadonlyMap<string, FoundResource>;
  /** Rows whose resource needs no decision. */
  readonly seen: NumberSet;
  /** Tags of the files that the items name. */
  readonly named: ReadonlySet<string>;
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

/** What list and ledger show of one source. */
export interface ListedRows {
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
export function namedBy(named: ReadonlySet<string>): (file: () => string) => boolean {
  return (file) => named.size > 0 && named.has(file());
}

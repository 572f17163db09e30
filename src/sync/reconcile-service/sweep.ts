import { setImmediate as nextTurn } from "node:timers/promises";
import { openNumberSet, type NumberSet } from "../../lib/number-set.ts";
import type { ActionContext } from "../actions/context.ts";
import type { AcknowledgedFile, Scope } from "../ledger/drift/drift.ts";
import {
  alterationsOf,
  gatherUnowned,
  NO_COUNTS,
  isAsStored,
  type Alteration,
  type Claims,
  type DriftCounts,
  type Unowned,
} from "../plan/audit.ts";
import type { ListedResource, RelativePath } from "../plan/model.ts";
import { CLOCK_SLACK_MS } from "../plan/settlement.ts";
import { compareWithService, type Listed } from "./compare.ts";
import { openRecent, inFlightTest } from "./recent.ts";

/** A row whose resource differs from what was acknowledged. */
export interface Drifted {
  readonly row: AcknowledgedFile;
  readonly kind: "missing" | "altered";
  /** The differences of an altered one; empty if there were too many to remember. */
  readonly alterations: readonly Alteration[];
  /** Text and title of an altered one as they were found. */
  readonly found: Pick<ListedResource, "digest" | "label"> | undefined;
}

/** The result of comparing a scope. */
export interface Sweep {
  readonly scope: Scope;
  /** Counts by the source's number. */
  readonly counts: ReadonlyMap<number, DriftCounts>;
  /** Rows of all sources that count as missing. */
  readonly missing: NumberSet;
  /** Rows that were not judged because they were sent so shortly before, by the source's number. */
  readonly unjudged: ReadonlyMap<number, Unjudged>;
  /** Returns rows that drifted, as they are now, except those that were changed or sent since. */
  drifted(): AsyncIterable<Drifted>;
  /** Returns rows that the list does not show, as they are now, including unsure ones and those not judged. */
  unlisted(): AsyncIterable<AcknowledgedFile>;
  readonly claims: Claims;
  /** Rows whose file may have had another resource before the source was adopted. */
  readonly older: readonly Older[];
}

/**
 * Number of rows that were not judged, and how many of them the list does not show although nothing was sent while it
 * was read.
 */
export interface Unjudged {
  readonly rows: number;
  readonly missing: number;
}

/** A row, and unowned resources that a former ledger may have made of its file, oldest first. */
export interface Older {
  readonly row: AcknowledgedFile;
  readonly resources: readonly ListedResource[];
}

/** An adopted source: when, by the service's clock, and which resources its adoption saw and did not touch. */
export interface Adopted {
  readonly source: number;
  readonly boundMs: number;
  /**
   * Since when this ledger makes resources, by the service's clock. Where the list needs the first create's answer,
   * that is before the adoption.
   */
  readonly bornMs: number;
  /** Resources that the adoption saw and did not touch, and when they were last updated as far as its list knew. */
  readonly seen: ReadonlyMap<string, number | undefined>;
}

export interface SweepOptions {
  /** Reports whether a file is being read or sent. */
  readonly isBusy: (source: number, path: RelativePath) => boolean;
  /** Actions this recent are not judged: a service's list may lag behind its answers. */
  readonly lagMs: number;
  /** An adopted source: `older` is searched for among what its adoption did not see. Default: none is. */
  readonly adopted?: Adopted;
  readonly signal?: AbortSignal | undefined;
}

/** Rows read between two turns of the loop. */
const PAGE_ROWS = 1000;
/** Number of altered resources of which the differences are remembered. */
const DETAILS_MAX = 10_000;

/**
 * Compares a scope with its rows. The list is streamed and each resource compared on its own; of the rows only a bit
 * each is stored, so that a million resources are ordinary. Sends nothing but the list request, and writes nothing.
 * Returns undefined if the collection's id is unknown. Throws `list_refused`.
 */
export async function sweepScope(
  context: ActionContext,
  scope: Scope,
  { isBusy, lagMs, adopted, signal }: SweepOptions,
): Promise<Sweep | undefined> {
  const { ledger } = context;
  const { drift } = ledger;
  ledger.flush();
  const started = drift.lastActivity();
  const settledMs = Date.now() - lagMs;
  const list = await readList(context, scope, adopted, signal);
  if (list === undefined) return undefined;
  const { seen, altered, asStored, young, details, unowned } = list;

  const recent = openRecent(context, started, settledMs);
  const kindOf = (row: AcknowledgedFile): Drifted["kind"] | "agrees" | undefined => {
    if (!isAcknowledged(row) || recent.row(row)) return undefined;
    if (!seen.has(row.id)) return "missing";
    return altered.has(row.id) ? "altered" : "agrees";
  };
  const counts = new Map<number, DriftCounts>();
  const unjudged = new Map<number, Unjudged>();
  const meanwhile = openRecent(context, started, Infinity);
  const missing = openNumberSet();
  const older: Older[] = [];
  for await (const row of rowsOf(context, scope, signal)) {
    unowned.show(row);
    if (adopted !== undefined && young.has(row.id)) {
      const resources = olderOf(unowned, row, adopted);
      if (resources.length > 0 && !isBusy(row.source, row.path)) older.push({ row, resources });
    }
    const kind = kindOf(row);
    if (kind === undefined && isAcknowledged(row)) {
      const before = unjudged.get(row.source) ?? { rows: 0, missing: 0 };
      const isMissing = !seen.has(row.id) && !meanwhile.row(row);
      unjudged.set(row.source, { rows: before.rows + 1, missing: before.missing + Number(isMissing) });
    }
    if (kind === "missing") missing.add(row.id);
    if (kind !== undefined)
      counts.set(row.source, counted(counts.get(row.source), kind, asStored.has(row.id)));
  }
  const asTheyAre = async function* (): AsyncGenerator<AcknowledgedFile> {
    const since = openRecent(context, started, Infinity);
    for await (const row of rowsOf(context, scope, signal))
      if (isAcknowledged(row) && !since.row(row) && !isBusy(row.source, row.path)) yield row;
  };
  const isInFlight = inFlightTest(context);
  /** Made or deleted while the list was read, or shortly before: a row owns it by now, or none does any more. */
  const isUndecided = (resource: ListedResource): boolean =>
    isInFlight(resource) || recent.doc(resource.docId) || ledger.files.ownsDoc(resource.docId);
  return {
    scope,
    counts,
    missing,
    unjudged,
    older: older.map(({ row, resources }) => ({
      row,
      resources: resources.filter((each) => !isUndecided(each)),
    })),
    claims: unowned.finish(drift.bornThereMs(list.clockOffsetMs ?? 0), isUndecided),
    unlisted: async function* () {
      for await (const row of asTheyAre()) if (!seen.has(row.id)) yield row;
    },
    drifted: async function* () {
      for await (const row of asTheyAre()) {
        const kind = row.state === "agreed" ? kindOf(row) : undefined;
        if (kind === undefined || kind === "agrees") continue;
        const known = kind === "altered" ? details.get(row.id) : undefined;
        yield { row, kind, alterations: known?.alterations ?? [], found: known?.found };
      }
    },
  };
}

/** The rows of a scope that a list shows, by number, and the resources that no row owns. */
interface ReadList {
  readonly seen: NumberSet;
  readonly altered: NumberSet;
  readonly asStored: NumberSet;
  /** Rows whose resource was made by this ledger. */
  readonly young: NumberSet;
  readonly details: Map<number, Pick<Drifted, "alterations" | "found">>;
  readonly unowned: ReturnType<typeof gatherUnowned>;
}

/** Reads the list of a scope, from its start if it must begin again. Returns undefined if the collection's id is unknown. */
async function readList(
  context: ActionContext,
  scope: Scope,
  adopted: Adopted | undefined,
  signal: AbortSignal | undefined,
): Promise<(ReadList & { readonly clockOffsetMs: number | undefined }) | undefined> {
  const youngMs = Math.min(adopted?.boundMs ?? Infinity, adopted?.bornMs ?? Infinity);
  const openList = (): ReadList => ({
    seen: openNumberSet(),
    altered: openNumberSet(),
    asStored: openNumberSet(),
    young: openNumberSet(),
    details: new Map(),
    unowned: gatherUnowned(),
  });
  let list = openList();
  const visit = ({ resource, owner: row }: Listed): void => {
    if (row === "inFlight") return;
    if (row === undefined || row === "deleted") {
      list.unowned.add(resource, row === "deleted");
      return;
    }
    list.seen.add(row.id);
    if (adopted?.source === row.source && (resource.createdMs ?? 0) >= youngMs) list.young.add(row.id);
    const alterations = alterationsOf(row, resource);
    if (alterations.length === 0) return;
    list.altered.add(row.id);
    if (isAsStored(row.storedMs, resource)) list.asStored.add(row.id);
    const { digest, label } = resource;
    if (list.details.size < DETAILS_MAX) list.details.set(row.id, { alterations, found: { digest, label } });
  };
  const begin = (): typeof visit => {
    list = openList();
    return visit;
  };
  const compared = await compareWithService(context, scope, begin, signal);
  return compared && { ...list, clockOffsetMs: compared.clockOffsetMs };
}

/** An unsure row counts as well: the list shows nevertheless that its resource is missing. */
function isAcknowledged({ state }: AcknowledgedFile): boolean {
  return state === "agreed" || state === "unsure";
}

/** The service reports its time in whole seconds, and answers some time after the request. */
function olderOf(
  unowned: Unowned,
  row: AcknowledgedFile,
  { boundMs, seen }: Adopted,
): readonly ListedResource[] {
  const untilMs = Math.min(boundMs + CLOCK_SLACK_MS, row.storedMs ?? Infinity);
  return unowned.olderThan(row, untilMs).filter(({ docId, updatedMs }) => {
    if (!seen.has(docId)) return true;
    // The adoption saw it before an update: its list was stale, or a former process's update took effect late.
    const seenMs = seen.get(docId);
    return seenMs !== undefined && updatedMs !== undefined && updatedMs !== seenMs;
  });
}

function counted(
  before: DriftCounts | undefined,
  kind: Drifted["kind"] | "agrees",
  isStoredSo: boolean,
): DriftCounts {
  const { acknowledged, missing, altered, asStored = 0 } = before ?? NO_COUNTS;
  return {
    acknowledged: acknowledged + 1,
    missing: missing + Number(kind === "missing"),
    altered: altered + Number(kind === "altered"),
    asStored: asStored + Number(kind === "altered" && isStoredSo),
  };
}

/** Reads all rows of a scope in pages. Between two of them the ledger may be written, and the loop turns. */
async function* rowsOf(
  { ledger, signal: stopped }: ActionContext,
  scope: Scope,
  signal: AbortSignal = stopped,
): AsyncGenerator<AcknowledgedFile> {
  let afterId = 0;
  for (;;) {
    signal.throwIfAborted();
    ledger.flush();
    const page = ledger.drift.page(scope, afterId, PAGE_ROWS);
    yield* page;
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE_ROWS) return;
    afterId = last.id;
    await nextTurn();
  }
}

import type { SyncConfig } from "../../config/schema/sync.ts";
import type { Deletion } from "../ledger/intents/deletes.ts";
import type { PathStates } from "../agenda/path-states.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Hold } from "../ledger/sources/sources.ts";
import type { SourceRow } from "../ledger/sources/rows.ts";
import { type Braked, type BrakeFacts, isSameRoot, LATELY_MS } from "../plan/brakes.ts";
import type { KnownFile, RelativePath, RootIdentity, Scan } from "../plan/model.ts";
import { scopeTest } from "../plan/scope.ts";
import type { Timing } from "../plan/timing.ts";

/** Why nothing is sent for a source; without a code, another folder halts it. */
export type RootHalt = Pick<Hold, "code" | "unit"> & { readonly reason: string | undefined };

/** Delays deletes, and counts them. */
export interface Deletes {
  /**
   * Returns what may be done now of the brakes' decision: a burst of deletes is judged as a whole before any of it is
   * sent. A row outside of the scan's scope is still missing. `recheck` is called for what waits.
   */
  ripe(
    braked: Braked,
    scan: Scan,
    when: {
      /** Nothing else is about to be checked. */
      readonly quiet: boolean;
      /**
       * The result of `isBurstOver` when this pass began: a pass that began before the end has not checked everything
       * that it must.
       */
      readonly isBurstOver: boolean;
      /** Paths in flight that the scan covered, whatever its scope. */
      readonly inFlight: readonly RelativePath[];
    },
    checkAgain: (path: RelativePath, atMs: number) => void,
  ): Braked;
  /** Whether files are missing and no further one has gone missing for some time, so that deletes may be sent. */
  isBurstOver(): boolean;
  /** Returns how many rows are missing: these, and those from other passes that are not ripe. */
  missingWith(gone: readonly KnownFile[]): number;
  /** Returns the facts for the brakes. */
  facts(
    row: SourceRow,
    more?: Partial<
      Pick<BrakeFacts, "leftOut" | "others" | "madeLately" | "missingBusy" | "missingNew" | "hidden">
    >,
  ): BrakeFacts;
  /** Returns how many files that do not exist may have a resource from a create without an answer. */
  missingInDoubt(scan: Scan): number;
  /** Returns resources that files of the source received within the last minutes and still have. */
  madeLately(): ReadonlySet<string>;
  /** Writes the intents of the deletes that the brakes let through, and removes the rows. */
  begin(braked: Pick<Braked, "deletes" | "counted">): Promise<readonly Deletion[]>;
  /** Holds rows until a person agrees, or clears the reason if none is left. The source is no longer halted. */
  hold(held: readonly KnownFile[], reason: string | undefined): void;
  /**
   * Halts the source: because of another root, from which so many files are missing, or because there is none. No row
   * is marked, so that nothing has happened when the right folder is back. An approval that covered less is used up.
   */
  halt(why: RootHalt, root: RootIdentity | undefined, missing: number): void;
}

/**
 * A burst waits no longer than this. From then on its deletes count against the limits of later ones. Otherwise a
 * folder in which files constantly come and go would never have its deletes sent.
 */
const BURST_MAX_MS = LATELY_MS;
/** Deletes that wait for the end of a burst are checked at least this often, so that the source does not count as idle. */
const BURST_CHECK_MS = 1000;

/**
 * A missing file is a delete only when nothing else is dirty, because an event for its new name may be about to arrive.
 * It waits at most this long.
 */
const DELETE_WAIT_MS = 5000;
/** A second check comes no sooner than this, whatever the settle time: the other half of a rename is another event. */
const SECOND_CHECK_MS = 10;

const NONE: ReadonlySet<number> = new Set();

export interface DeletesOptions {
  /** How often saving a deleted file's text is tried; 0: it is not saved. */
  readonly keepTries: number;
  readonly source: number;
  /** The source deletes nothing. */
  readonly keeps: boolean;
  readonly ledger: Ledger;
  readonly sync: SyncConfig;
  readonly states: Pick<PathStates, "missing" | "miss" | "decide">;
  readonly now: () => number;
  /** A scan is the truth and no event may follow, so nothing waits. */
  readonly once: boolean;
  readonly timing: Pick<Timing, "burstGapMs">;
}

/** Opens the deletes of a source. */
export function openDeletes(options: DeletesOptions): Deletes {
  const { source, ledger, sync, now, keepTries, keeps } = options;
  return {
    ...openBurst(options),
    facts: (
      row,
      { leftOut = NONE, others = NONE, madeLately, missingBusy = 0, missingNew = 0, hidden = 0 } = {},
    ) => ({
      rootBefore: row.root,
      missingBusy,
      missingNew,
      hidden,
      filesBefore: ledger.sources.withResource(source) - row.kept,
      keeps,
      others,
      deletedLately: ledger.sources.deletedSince(source, now() - LATELY_MS),
      heldBefore: row.held,
      holdDeletesOver: sync.holdDeletesOver,
      holdDeletesPercent: sync.holdDeletesPercent,
      holdReason: row.holdReason ?? undefined,
      approval:
        row.approved && row.haltRoot !== undefined ? { root: row.haltRoot, files: row.haltFiles } : undefined,
      leftOut,
      madeLately,
    }),
    missingInDoubt: (scan) => {
      const inScope = scopeTest(scan.scope);
      const creates = [...ledger.intents.creates(source), ...ledger.intents.doubts(source)];
      const paths = creates
        .filter(({ path, docId }) => docId === null && inScope(path) && !ledger.files.living(source, path))
        .map(({ path }) => path);
      return absentFrom({ ...scan, scope: undefined }, paths).size;
    },
    madeLately: () => {
      const made = ledger.activity.madeSince(source, now() - LATELY_MS);
      return new Set(made.filter((docId) => ledger.files.acknowledged(docId)?.source === source));
    },
    begin: async ({ deletes, counted }) => {
      if (deletes.length === 0) return [];
      const deletions: Deletion[] = [];
      await ledger.write(() => {
        const nowMs = now();
        if (counted > 0) ledger.sources.countDeletes(source, nowMs, counted, nowMs - LATELY_MS);
        for (const { id, path, docId } of deletes) {
          if (docId !== null) deletions.push({ id: ledger.intents.deleteFile(id, keepTries), path, docId });
          ledger.files.remove(id);
        }
      });
      return deletions;
    },
    hold: (held, reason) => {
      ledger.flush();
      const before = ledger.sources.get(source);
      const fresh = held.filter(({ state }) => state !== "held");
      if (fresh.length > 0) {
        ledger.note(() => {
          for (const { id } of fresh) ledger.files.hold(id);
        });
      }
      // A partial pass that holds nothing does not know what is held elsewhere.
      const words = reason ?? (before.held > 0 ? before.holdReason : null);
      if (before.halted === null && before.holdReason === words) return;
      ledger.note(() => ledger.sources.setHold(source, { halted: null, reason: words }));
    },
    halt: ({ reason: halted = null, ...cause }, root, files) => {
      ledger.flush();
      const before = ledger.sources.get(source);
      const isSame = isSameRoot(before.haltRoot, root) && before.haltFiles === files;
      if (before.halted === halted && isSame && !before.approved) return;
      ledger.note(() => {
        ledger.sources.setHold(source, { halted, ...cause, reason: before.holdReason, root, files });
        ledger.sources.approvalUsed(source);
      });
    },
  };
}

/** Opens the burst of files that are missing and that no pass has decided about. */
function openBurst({
  source,
  ledger,
  sync,
  states,
  now,
  once,
  timing,
}: DeletesOptions): Pick<Deletes, "ripe" | "isBurstOver" | "missingWith"> {
  const missing = states.missing();
  /**
   * Paths without a row, or in flight, at which nothing was found during this burst, and when they were added, oldest
   * first: files that have no resource yet belong to the burst as well.
   */
  const others = new Map<RelativePath, number>();
  let lastOtherMs = -Infinity;

  /** Returns when no further file will have gone missing for the length of the gap. */
  const burstEndMs = (): number => {
    let firstMs = Infinity;
    let lastMs = lastOtherMs;
    for (const { sinceMs } of missing.values()) {
      firstMs = Math.min(firstMs, sinceMs);
      lastMs = Math.max(lastMs, sinceMs);
    }
    return Math.min(lastMs + timing.burstGapMs, firstMs + BURST_MAX_MS);
  };

  const noteOthers = (scan: Scan, inFlight: readonly RelativePath[], nowMs: number): void => {
    if (missing.size === 0) {
      others.clear();
      lastOtherMs = -Infinity;
      return;
    }
    // In a folder in which files constantly come and go, a burst may follow the other without a pause.
    for (const [path, sinceMs] of others) {
      if (nowMs - sinceMs < BURST_MAX_MS) break;
      others.delete(path);
    }
    const absent = [...absentFrom(scan, inFlight)].filter((path) => !missing.has(path) && !others.has(path));
    const found = new Set(absent.length === 0 ? [] : scan.entries.map(({ ino }) => ino));
    for (const path of absent) {
      const ino = ledger.files.living(source, path)?.ino;
      // A renamed file is not gone.
      if (ino !== undefined && found.has(ino)) continue;
      others.set(path, nowMs);
      lastOtherMs = nowMs;
    }
  };

  return {
    ripe: (braked, scan, { quiet, isBurstOver, inFlight }, checkAgain) => {
      if (once) return braked;
      const nowMs = now();
      const inScope = scopeTest(scan.scope);
      const gone = [...braked.deletes, ...braked.held].filter((row) => !isDecided(row));
      const still = new Set(gone.map(({ id }) => id));
      for (const [path, { id }] of missing) if (!still.has(id) && inScope(path)) states.decide(path);
      for (const { id, path } of gone) if (missing.get(path)?.id !== id) states.miss(path, id, nowMs);
      noteOthers(scan, inFlight, nowMs);
      const endMs = burstEndMs();
      const hasRested = ({ path }: KnownFile): boolean => {
        const restedMs = nowMs - (missing.get(path)?.sinceMs ?? nowMs);
        return restedMs > 0 && restedMs >= sync.settleMs && (quiet || restedMs >= DELETE_WAIT_MS);
      };
      // Holding sends nothing, and what holds a part of a burst holds all of it.
      const held = braked.held.filter((row) => isDecided(row) || hasRested(row));
      const isOver = isBurstOver && nowMs >= endMs;
      const deletes = braked.deletes.filter((row) => isDecided(row) || (isOver && hasRested(row)));
      for (const row of gone)
        if (!hasRested(row)) checkAgain(row.path, nowMs + Math.max(sync.settleMs, SECOND_CHECK_MS));
      for (const row of [...held, ...deletes]) if (!isDecided(row)) states.decide(row.path);
      const [first] = missing.keys();
      // After its end, only what has not rested is still missing.
      const burstCheckMs = isOver ? Infinity : Math.max(nowMs + SECOND_CHECK_MS, endMs);
      if (first !== undefined) checkAgain(first, Math.min(burstCheckMs, nowMs + BURST_CHECK_MS));
      return {
        ...braked,
        held,
        deletes,
        counted: braked.counted === 0 ? 0 : deletes.filter((row) => !isDecided(row)).length,
        // The reason shown to a person stays the same until new rows join the held ones.
        reason: held.every(isDecided) ? undefined : braked.reason,
      };
    },
    isBurstOver: () => missing.size > 0 && now() >= burstEndMs(),
    missingWith: (gone) => {
      const more = gone.filter(({ path }) => !missing.has(path)).length;
      return missing.size + more;
    },
  };
}

/** Reports whether a delete is held, or a person agreed to it. */
function isDecided({ state }: KnownFile): boolean {
  return state === "held" || state === "doomed";
}

/** Returns paths that a scan had to cover, or did cover in flight, and where it found nothing. */
function absentFrom(
  { scope = [], entries, refused, skipped, unreadable }: Scan,
  inFlight: readonly RelativePath[],
): ReadonlySet<RelativePath> {
  const isUnread = scopeTest(unreadable.map(({ path }) => path));
  const absent = new Set([...scope, ...inFlight.filter((path) => !isUnread(path))]);
  const found = [...entries, ...refused, ...skipped.map(({ entry }) => entry), ...unreadable];
  for (const { path } of found)
    for (let end = path.length; end > 0; end = path.lastIndexOf("/", end - 1))
      absent.delete(path.slice(0, end));
  return absent;
}

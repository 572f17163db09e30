import type { SyncConfig } from "../../config/schema.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { SourceRow } from "../ledger/sources.ts";
import { type Braked, type BrakeFacts, isSameRoot, LATELY_MS } from "../plan/brakes.ts";
import type { KnownFile, RelativePath, RootIdentity } from "../plan/model.ts";

/** A resource that is to be deleted; its intent is in the ledger. */
export interface Deletion {
  readonly id: number;
  readonly path: RelativePath;
  readonly docId: string;
}

/** What keeps deletes waiting, and what counts them. */
export interface Deletes {
  /**
   * Of the missing rows those that have been missing long enough. `inScope` says where this pass looked: a row from
   * elsewhere is still missing. `quiet` says that nothing else is about to be looked at; `lookAgain` is called for the
   * others. `together`: all of them are ripe or none is, for a folder that is being emptied must be judged as a whole.
   */
  ripe(
    gone: readonly KnownFile[],
    inScope: (path: RelativePath) => boolean,
    quiet: boolean,
    lookAgain: (path: RelativePath, atMs: number) => void,
    together?: boolean,
  ): readonly KnownFile[];
  /** How many rows are missing: these, and those from other passes that are not ripe. */
  missingWith(gone: readonly KnownFile[]): number;
  /** Paths of rows that are missing and not yet ripe. */
  waiting(): Iterable<RelativePath>;
  /** What the brakes judge by. */
  facts(
    row: SourceRow,
    more?: Partial<Pick<BrakeFacts, "leftOut" | "madeLately" | "missingBusy" | "missingNew">>,
  ): BrakeFacts;
  /** Resources that files of the source got within the last minutes and still have. */
  madeLately(): ReadonlySet<string>;
  /** Writes the intents of the deletes that the brakes let through; the rows are gone then. */
  begin(braked: Pick<Braked, "deletes" | "counted">): Promise<readonly Deletion[]>;
  /** Sets rows aside until a person agrees, or clears the reason when none is left. The source stands still no more. */
  hold(held: readonly KnownFile[], reason: string | undefined): void;
  /**
   * The source stands still: before another root, from which so many files are missing, or without one. No row is
   * marked, so that nothing has happened when the right folder is back; and a word that covered less is used up.
   */
  halt(reason: string | undefined, root: RootIdentity | undefined, missing: number): void;
}

/** A missing file is a delete only when nothing else is dirty, for its new name may be about to be told; at most so long. */
const DELETE_WAIT_MS = 5000;
/** A second look comes no sooner than this, whatever the settle time: the other half of a rename is another event. */
const SECOND_LOOK_MS = 10;

const NONE: ReadonlySet<number> = new Set();

/** `once`: a scan is the truth and no event may follow, so nothing waits. */
export function openDeletes(options: {
  /** How often it is tried to keep a deleted file's text; 0: it is not kept. */
  readonly keepTries: number;
  readonly source: number;
  readonly ledger: Ledger;
  readonly sync: SyncConfig;
  readonly now: () => number;
  readonly once: boolean;
}): Deletes {
  const { source, ledger, sync, now, once, keepTries } = options;
  const missing = new Map<number, { path: RelativePath; sinceMs: number }>();

  return {
    ripe: (gone, inScope, quiet, lookAgain, together = false) => {
      if (once) return gone;
      const nowMs = now();
      const still = new Set(gone.map(({ id }) => id));
      for (const [id, { path }] of missing) if (!still.has(id) && inScope(path)) missing.delete(id);
      const isDecided = ({ state }: KnownFile): boolean => state === "held" || state === "doomed";
      const isRipe = ({ id }: KnownFile): boolean => {
        const sinceMs = missing.get(id)?.sinceMs;
        if (sinceMs === undefined) return false;
        return nowMs - sinceMs >= sync.settleMs && (quiet || nowMs - sinceMs >= DELETE_WAIT_MS);
      };
      const allOrNone = together && !gone.every((row) => isDecided(row) || isRipe(row));
      return gone.filter((row) => {
        const { id, path } = row;
        if (isDecided(row) || (!allOrNone && isRipe(row))) {
          missing.delete(id);
          return true;
        }
        if (!missing.has(id)) missing.set(id, { path, sinceMs: nowMs });
        lookAgain(path, nowMs + Math.max(sync.settleMs, SECOND_LOOK_MS));
        return false;
      });
    },
    missingWith: (gone) => {
      const more = gone.filter(({ id }) => !missing.has(id)).length;
      return missing.size + more;
    },
    waiting: () => [...missing.values()].map(({ path }) => path),
    facts: (row, { leftOut = NONE, madeLately, missingBusy = 0, missingNew = 0 } = {}) => ({
      rootBefore: row.root,
      missingBusy,
      missingNew,
      filesBefore: ledger.sources.withResource(source),
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
    madeLately: () => {
      const made = ledger.activity.madeSince(source, now() - LATELY_MS);
      return new Set(made.filter((docId) => ledger.drift.byDoc(docId)?.source === source));
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
      // A partial pass that holds nothing says nothing of what is held elsewhere.
      const words = reason ?? (before.held > 0 ? before.holdReason : null);
      if (before.halted === null && before.holdReason === words) return;
      ledger.note(() => ledger.sources.setHold(source, { halted: null, reason: words }));
    },
    halt: (reason, root, files) => {
      ledger.flush();
      const before = ledger.sources.get(source);
      const isSame = isSameRoot(before.haltRoot, root) && before.haltFiles === files;
      if (before.halted === (reason ?? null) && isSame && !before.approved) return;
      ledger.note(() => {
        ledger.sources.setHold(source, { halted: reason ?? null, reason: before.holdReason, root, files });
        ledger.sources.approvalUsed(source);
      });
    },
  };
}

import type { SyncConfig } from "../../config/schema.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { SourceRow } from "../ledger/sources.ts";
import { LATELY_MS, type BrakeFacts } from "../plan/brakes.ts";
import type { KnownFile, RelativePath } from "../plan/model.ts";

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
   * others.
   */
  ripe(
    gone: readonly KnownFile[],
    inScope: (path: RelativePath) => boolean,
    quiet: boolean,
    lookAgain: (path: RelativePath, atMs: number) => void,
  ): readonly KnownFile[];
  /** Paths of rows that are missing and not yet ripe. */
  waiting(): Iterable<RelativePath>;
  facts(row: SourceRow): BrakeFacts;
  /** Writes the intents of deletes down; the rows are gone then. */
  begin(rows: readonly KnownFile[]): Promise<readonly Deletion[]>;
  /** Sets rows aside until a person agrees, or clears the reason when none is left. */
  hold(held: readonly KnownFile[], reason: string | undefined, halted: boolean): void;
}

/** A missing file is a delete only when nothing else is dirty, for its new name may be about to be told; at most so long. */
const DELETE_WAIT_MS = 5000;
/** A second look comes no sooner than this, whatever the settle time: the other half of a rename is another event. */
const SECOND_LOOK_MS = 10;

/** `once`: a scan is the truth and no event may follow, so nothing waits. */
export function openDeletes(options: {
  readonly source: number;
  readonly ledger: Ledger;
  readonly sync: SyncConfig;
  readonly now: () => number;
  readonly once: boolean;
}): Deletes {
  const { source, ledger, sync, now, once } = options;
  const missing = new Map<number, { path: RelativePath; sinceMs: number }>();
  let lately: { atMs: number; count: number }[] = [];

  return {
    ripe: (gone, inScope, quiet, lookAgain) => {
      if (once) return gone;
      const nowMs = now();
      const still = new Set(gone.map(({ id }) => id));
      for (const [id, { path }] of missing) if (!still.has(id) && inScope(path)) missing.delete(id);
      return gone.filter(({ id, path, state }) => {
        const before = missing.get(id);
        const sinceMs = before?.sinceMs ?? nowMs;
        const missingMs = nowMs - sinceMs;
        const isRipe =
          before !== undefined && missingMs >= sync.settleMs && (quiet || missingMs >= DELETE_WAIT_MS);
        if (isRipe || state === "held" || state === "doomed") {
          missing.delete(id);
          return true;
        }
        missing.set(id, { path, sinceMs });
        lookAgain(path, nowMs + Math.max(sync.settleMs, SECOND_LOOK_MS));
        return false;
      });
    },
    waiting: () => [...missing.values()].map(({ path }) => path),
    facts: (row) => {
      lately = lately.filter(({ atMs }) => now() - atMs < LATELY_MS);
      return {
        rootBefore: row.root,
        filesBefore: row.agreed + row.unsure + row.held,
        deletedLately: lately.reduce((sum, { count }) => sum + count, 0),
        holdDeletesOver: sync.holdDeletesOver,
        holdDeletesPercent: sync.holdDeletesPercent,
        holdReason: row.holdReason ?? undefined,
        approved: row.approved,
      };
    },
    begin: async (rows) => {
      if (rows.length === 0) return [];
      lately.push({ atMs: now(), count: rows.length });
      const deletions: Deletion[] = [];
      await ledger.write(() => {
        for (const { id, path, docId } of rows) {
          ledger.files.remove(id);
          if (docId !== null) deletions.push({ id: ledger.intents.delete(source, path, docId), path, docId });
        }
      });
      return deletions;
    },
    hold: (held, reason, halted) => {
      ledger.flush();
      const before = ledger.sources.get(source);
      const fresh = held.filter(({ state }) => state !== "held");
      // Rows are not marked while the whole source is halted: when the right folder is back, nothing has happened.
      if (!halted && fresh.length > 0) {
        ledger.note(() => {
          for (const { id } of fresh) ledger.files.setState(id, "held");
        });
      }
      // A partial pass that holds nothing says nothing of what is held elsewhere.
      const words = reason ?? (before.held > 0 ? before.holdReason : null);
      const halt = halted ? words : null;
      if (before.halted === halt && before.holdReason === words) return;
      ledger.note(() => ledger.sources.setHold(source, { halted: halt, reason: words }));
    },
  };
}

import type { Deletion } from "../ledger/intents.ts";
import type { Candidate, RelativePath } from "../plan/model.ts";
import type { Outcome } from "../ledger/activity.ts";

/** Since when planned changes of a source wait to be acknowledged. */
export interface PendingChanges {
  /** Records planned changes. A parked file that is tried again has waited since it was first planned. */
  begin(candidates: readonly Candidate[], nowMs: number): void;
  beginDeletes(deletions: readonly Deletion[], nowMs: number): void;
  /** Records the result of a file's job, before the job ends. */
  reported(path: RelativePath, outcome: Outcome): void;
  /** Records the end of a job. Unless the file was parked, it waits no more. */
  end(path: RelativePath): void;
  endDelete(deletion: Deletion): void;
  /** Reports whether a file was parked by its last job. It may be gone meanwhile. */
  wasParked(path: RelativePath): boolean;
  /** Since when the oldest waits. `isParked` reports whether a parked file still is; it may be gone meanwhile. */
  oldestMs(isParked: (path: RelativePath) => boolean): number | undefined;
}

/** Opens an empty set. */
export function openPendingChanges(): PendingChanges {
  // An updated entry keeps its position, so that the first in each map is the oldest.
  const files = new Map<RelativePath, { readonly sinceMs: number; parked: boolean }>();
  const deletes = new Map<number, number>();

  const oldestFileMs = (isParked: (path: RelativePath) => boolean): number | undefined => {
    for (const [path, { sinceMs, parked }] of files) {
      if (!parked || isParked(path)) return sinceMs;
      files.delete(path);
    }
    return undefined;
  };
  return {
    begin: (candidates, nowMs) => {
      for (const { entry } of candidates) {
        const before = files.get(entry.path);
        if (before === undefined) files.set(entry.path, { sinceMs: nowMs, parked: false });
        else before.parked = false;
      }
    },
    beginDeletes: (deletions, nowMs) => {
      for (const { id } of deletions) if (!deletes.has(id)) deletes.set(id, nowMs);
    },
    reported: (path, outcome) => {
      const work = files.get(path);
      if (work !== undefined) work.parked = outcome === "parked";
    },
    end: (path) => {
      if (files.get(path)?.parked === false) files.delete(path);
    },
    endDelete: ({ id }) => void deletes.delete(id),
    wasParked: (path) => files.get(path)?.parked === true,
    oldestMs: (isParked) => earliest(oldestFileMs(isParked), deletes.values().next().value),
  };
}

/** Returns the earliest of some times; undefined if there is none. */
export function earliest(...times: readonly (number | undefined)[]): number | undefined {
  const known = times.filter((time) => time !== undefined);
  return known.length === 0 ? undefined : Math.min(...known);
}

import type { Deletion } from "../ledger/intents.ts";
import type { Look, RelativePath } from "../plan/model.ts";
import type { Outcome } from "../ledger/activity.ts";

/** Since when the changes of a source wait that were planned and are not acknowledged. */
export interface Waits {
  /** These were planned. One that was put aside and is tried again has waited since it was planned first. */
  begin(looks: readonly Look[], nowMs: number): void;
  beginDeletes(deletions: readonly Deletion[], nowMs: number): void;
  /** What came of a file's work, before its job ends. */
  reported(path: RelativePath, outcome: Outcome): void;
  /** The job has ended: what was not put aside waits no more. */
  end(path: RelativePath): void;
  endDelete(deletion: Deletion): void;
  /** Whether a file was put aside when it was last worked on; it may be gone meanwhile. */
  wasParked(path: RelativePath): boolean;
  /** Since when the oldest waits. `isParked`: whether a file that was put aside is so still; it may be gone meanwhile. */
  oldestMs(isParked: (path: RelativePath) => boolean): number | undefined;
}

/** Nothing waits. */
export function openWaits(): Waits {
  // What is put in keeps its place, so that the first in each is the oldest.
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
    begin: (looks, nowMs) => {
      for (const { entry } of looks) {
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

/** The earliest of some times; undefined where there is none. */
export function earliest(...times: readonly (number | undefined)[]): number | undefined {
  const known = times.filter((time) => time !== undefined);
  return known.length === 0 ? undefined : Math.min(...known);
}

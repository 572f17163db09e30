import { mergeParts } from "../../../index/words/merge.ts";
import { runsToMerge } from "../../../index/words/merge-plan.ts";
import { rowOf } from "../../../index/rows.ts";
import { isWorn, SEGMENT_BYTES_MAX, SEGMENTS_MERGED, SEGMENTS_MERGED_MAX } from "../../search/merge-rules.ts";
import { lastSequence, markRemoved, type StoredPart } from "../../search/stored-parts.ts";
import type { Connection } from "../database/connection.ts";
import { prepareRunWrites } from "./run-writes.ts";
import { prepareWordParts } from "./word-parts.ts";

/** Merges of the parts of scopes. */
export interface ScopeMerges {
  /** Scopes that may need a merge after a start: a crash or an upgrade may have left them without it. */
  unmerged(): number[];
  scopesWithRemoved(): number[];
  lastRemoval(): number;
  /** Live chunks of a scope. */
  chunks(scope: number): number;
  /**
   * Returns the merge that is most due in a scope, to be run in steps; undefined: none is. Removals up to the number `purged`
   * make one due.
   */
  next(scope: number, purged: number): Iterator<undefined> | undefined;
  /** Removes what a crash left of merges, in steps. */
  sweep(): Iterator<undefined>;
}

export function prepareScopeMerges(db: Connection): ScopeMerges {
  const stored = prepareWordParts(db);
  const runs = prepareRunWrites(db);
  const due = prepareDue(db);

  /**
   * Merges parts, consecutive ones by their sequences. The run's pages are written under a number that is not listed yet. One
   * step exchanges the parts for the run; chunks that were removed meanwhile stay marked.
   */
  function* merge(scope: number, parts: readonly StoredPart[]): Generator<undefined> {
    const first = parts[0]?.first ?? 0;
    const last = lastSequence(parts.at(-1));
    const removals = stored.removals(scope, 0).filter((of) => of.first >= first && of.first <= last);
    markRemoved(parts, removals);
    const number = runs.nextNumber();
    let page = 0;
    const merged = mergeParts(parts);
    let next = merged.next();
    for (; next.done !== true; next = merged.next()) {
      for (const data of next.value) runs.addPage(number, page++, data);
      yield;
    }
    const lastRemoval = removals.at(-1)?.number ?? 0;
    const replaced = runs.exchange({ scope, first, last, lastRemoval, number, head: next.value });
    for (const run of replaced) yield* runs.removePages(run);
  }

  /** Chooses the parts. Segments come first, so that the other choices have few of them in memory. */
  function choose(scope: number, purged: number): StoredPart[] {
    if (due.hasManySegments(scope))
      return stored.firstSegments(scope, SEGMENTS_MERGED_MAX, SEGMENT_BYTES_MAX);
    if (due.isWorn(scope, purged)) return [...stored.runs(scope), ...stored.segments(scope, 0)];
    const count = runsToMerge(due.runRows(scope));
    return count === 0 ? [] : stored.runs(scope).slice(-count);
  }

  return {
    ...due,
    next(scope, purged) {
      const parts = choose(scope, purged);
      return parts.length === 0 ? undefined : merge(scope, parts);
    },
    sweep: () => runs.sweep(),
  };
}

/** Prepares what decides whether a merge is due. */
function prepareDue(db: Connection) {
  const selectUnmerged = db
    .prepare<[], number>(`
      SELECT number FROM scope WHERE chunks >= ${SEGMENTS_MERGED}
        OR chunks = 0 AND EXISTS (SELECT 1 FROM word_removal WHERE word_removal.scope = scope.number)`)
    .pluck();
  const selectScopes = db.prepare<[], number>("SELECT DISTINCT scope FROM word_removal").pluck();
  const selectLast = db.prepare<[], number>("SELECT ifnull(max(number), 0) FROM word_removal").pluck();
  const countSegments = db
    .prepare<[number, number], number>(`
      SELECT count(*) FROM (
        SELECT 1 FROM word_segment WHERE first_row BETWEEN ? AND ? LIMIT ${SEGMENTS_MERGED})`)
    .pluck();
  const countRemoved = db
    .prepare<[number], number>("SELECT total(last - first + 1) FROM word_removal WHERE scope = ?")
    .pluck();
  const selectRemoval = db.prepare<[number, number]>(
    "SELECT 1 FROM word_removal WHERE scope = ? AND number <= ? LIMIT 1",
  );
  const selectChunks = db.prepare<[number], number>("SELECT chunks FROM scope WHERE number = ?").pluck();
  const selectRows = db
    .prepare<[number], number>("SELECT rows FROM word_run WHERE scope = ? ORDER BY first")
    .pluck();
  const chunks = (scope: number): number => selectChunks.get(scope) ?? 0;
  return {
    unmerged: (): number[] => selectUnmerged.all(),
    scopesWithRemoved: (): number[] => selectScopes.all(),
    lastRemoval: (): number => selectLast.get() ?? 0,
    chunks,
    runRows: (scope: number): number[] => selectRows.all(scope),
    hasManySegments: (scope: number): boolean =>
      countSegments.get(rowOf(scope, 0), rowOf(scope + 1, 0) - 1) === SEGMENTS_MERGED,
    /** Whether so many chunks of a scope were removed that all its parts are merged. */
    isWorn(scope: number, purged: number): boolean {
      if (purged > 0 && selectRemoval.get(scope, purged) !== undefined) return true;
      return isWorn(countRemoved.get(scope) ?? 0, chunks(scope));
    },
  };
}

import { RUN_PAGES_MAX, type RunHead } from "../../../index/words/run.ts";
import { rowOf, SEQUENCE_MAX } from "../../../index/rows.ts";
import {
  markRemoved,
  storedRun,
  storedSegment,
  type Removal,
  type StoredPart,
} from "../../search/stored-parts.ts";
import type { Connection } from "../database/connection.ts";

interface RunRow extends RunHead {
  readonly first: number;
}

interface SegmentRow {
  readonly row: number;
  readonly data: Buffer;
}

/** Reads of the index of words, on a connection of either kind. They throw `DamagedIndex`. */
export interface WordParts {
  /** Runs of a scope, by their first sequences. `known` returns those that are open. */
  runs(scope: number, known?: (number: number) => StoredPart | undefined): StoredPart[];
  /** Segments of a scope that begin at or after a sequence, in order. `known` returns those that are open. */
  segments(scope: number, from: number, known?: (number: number) => StoredPart | undefined): StoredPart[];
  /** The first segments of a scope: at most `countMax`, and no more once they have `bytesMax` together. */
  firstSegments(scope: number, countMax: number, bytesMax: number): StoredPart[];
  /** Removals of a scope after a number, in order. */
  removals(scope: number, after: number): Removal[];
  /** All parts of a scope, with its removed chunks marked. */
  marked(scope: number): StoredPart[];
}

export function prepareWordParts(db: Connection): WordParts {
  const selectRuns = db
    .prepare<[number], number>("SELECT number FROM word_run WHERE scope = ? ORDER BY first")
    .pluck();
  const selectRun = db.prepare<[number], RunRow>(
    "SELECT first, sequences, lengths, directory, filter FROM word_run WHERE number = ?",
  );
  const selectSegments = db
    .prepare<[number, number], number>(
      "SELECT first_row FROM word_segment WHERE first_row BETWEEN ? AND ? ORDER BY first_row",
    )
    .pluck();
  const selectSegment = db
    .prepare<[number], Buffer>("SELECT data FROM word_segment WHERE first_row = ?")
    .pluck();
  const selectData = db.prepare<[number, number, number], SegmentRow>(
    "SELECT first_row AS row, data FROM word_segment WHERE first_row BETWEEN ? AND ? ORDER BY first_row LIMIT ?",
  );
  const selectRemovals = db.prepare<[number, number], Removal>(
    "SELECT number, first, last FROM word_removal WHERE scope = ? AND number > ? ORDER BY number",
  );
  const selectPages = db
    .prepare<[number, number], Buffer>(
      "SELECT data FROM word_page WHERE number BETWEEN ? AND ? ORDER BY number",
    )
    .pluck();

  const openedRun = (number: number): StoredPart[] => {
    const row = selectRun.get(number);
    if (row === undefined) return [];
    const pages = (from: number, to: number): Buffer[] =>
      selectPages.all(pageNumber(number, from), pageNumber(number, to));
    return [storedRun(number, row.first, row, pages)];
  };

  const parts: WordParts = {
    runs: (scope, known) => selectRuns.all(scope).flatMap((number) => known?.(number) ?? openedRun(number)),
    segments: (scope, from, known) =>
      selectSegments.all(rowOf(scope, from), rowOf(scope, SEQUENCE_MAX)).flatMap((row) => {
        const first = row - rowOf(scope, 0);
        return known?.(first) ?? storedSegment(selectSegment.get(row) ?? EMPTY, first);
      }),
    firstSegments(scope, countMax, bytesMax) {
      const found: StoredPart[] = [];
      let bytes = 0;
      for (const { row, data } of selectData.iterate(rowOf(scope, 0), rowOf(scope, SEQUENCE_MAX), countMax)) {
        found.push(storedSegment(data, row - rowOf(scope, 0)));
        bytes += data.length;
        if (bytes >= bytesMax) break;
      }
      return found;
    },
    removals: (scope, after) => selectRemovals.all(scope, after),
    marked(scope) {
      const all = [...parts.runs(scope), ...parts.segments(scope, 0)];
      markRemoved(all, parts.removals(scope, 0));
      return all;
    },
  };
  return parts;
}

const EMPTY = Buffer.alloc(0);

/** Number of a run's page in the table of pages. */
export function pageNumber(run: number, page: number): number {
  return run * RUN_PAGES_MAX + page;
}

import { makeRemoved, type Removed } from "../../../index/words/removed.ts";
import type { WalkedPart } from "../../../index/words/part.ts";
import { openRun, RUN_PAGES_MAX, type RunHead } from "../../../index/words/run.ts";
import { openSegment } from "../../../index/words/segment.ts";
import { rowOf, SEQUENCE_MAX } from "../../../index/rows.ts";
import type { Connection } from "../database/connection.ts";

/** A part of the index of words, as the database has it. */
export type StoredPart = { readonly removed: Removed } & (
  | {
      readonly kind: "segment";
      /** Sequence of its first chunk, which names it. */
      readonly first: number;
      readonly part: WalkedPart;
      readonly bytes: number;
    }
  | {
      readonly kind: "run";
      readonly number: number;
      readonly first: number;
      readonly part: WalkedPart;
      readonly bytes: number;
    }
);

interface RunRow {
  readonly number: number;
  readonly first: number;
  readonly sequences: Buffer;
  readonly lengths: Buffer;
  readonly directory: Buffer;
  readonly filter: Buffer;
}

/** Removed chunks: a range of sequences. */
export interface Removal {
  readonly number: number;
  readonly first: number;
  readonly last: number;
}

/** Reads of the index of words, on a connection of either kind. */
export interface WordParts {
  /** Runs of a scope, by their first sequences. `known` returns those that are open. */
  runs(scope: number, known?: (number: number) => StoredPart | undefined): StoredPart[];
  /** Segments of a scope that begin at or after a sequence, in order. */
  segments(scope: number, from: number, known?: (first: number) => StoredPart | undefined): StoredPart[];
  /** Removals of a scope after a number, in order. */
  removals(scope: number, after: number): Removal[];
}

export function prepareWordParts(db: Connection): WordParts {
  const selectRuns = db
    .prepare<[number], number>("SELECT number FROM word_run WHERE scope = ? ORDER BY first")
    .pluck();
  const selectRun = db.prepare<[number], RunRow & RunHead>(
    "SELECT number, first, sequences, lengths, directory, filter FROM word_run WHERE number = ?",
  );
  const selectSegments = db
    .prepare<[number, number], number>(
      "SELECT first_row FROM word_segment WHERE first_row BETWEEN ? AND ? ORDER BY first_row",
    )
    .pluck();
  const selectSegment = db
    .prepare<[number], Buffer>("SELECT data FROM word_segment WHERE first_row = ?")
    .pluck();
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
    const part = openRun(row, (from, to) =>
      Buffer.concat(selectPages.all(pageNumber(number, from), pageNumber(number, to))),
    );
    const bytes = row.sequences.length + row.lengths.length + row.directory.length + row.filter.length;
    return [{ kind: "run", number, first: row.first, part, removed: makeRemoved(part), bytes }];
  };
  const openedSegment = (scope: number, first: number): StoredPart[] => {
    const data = selectSegment.get(rowOf(scope, first));
    if (data === undefined) return [];
    const part = openSegment(data, first);
    return [{ kind: "segment", first, part, removed: makeRemoved(part), bytes: data.length }];
  };

  return {
    runs: (scope, known) => selectRuns.all(scope).flatMap((number) => known?.(number) ?? openedRun(number)),
    segments: (scope, from, known) =>
      selectSegments
        .all(rowOf(scope, from), rowOf(scope, SEQUENCE_MAX))
        .map((row) => row - rowOf(scope, 0))
        .flatMap((first) => known?.(first) ?? openedSegment(scope, first)),
    removals: (scope, after) => selectRemovals.all(scope, after),
  };
}

/** Number of a run's page in the table of pages. */
export function pageNumber(run: number, page: number): number {
  return run * RUN_PAGES_MAX + page;
}

import type { MergedHead } from "../../../index/words/merge.ts";
import { RUN_PAGES_MAX } from "../../../index/words/run.ts";
import { rowOf } from "../../../index/rows.ts";
import type { Connection } from "../database/connection.ts";
import { pageNumber } from "./word-parts.ts";

/** Pages of merged runs that a step removes. */
const PAGES_REMOVED = 100;

/** A merged run, and the parts that it replaces: those that begin between two sequences. */
interface Exchange {
  readonly scope: number;
  readonly first: number;
  readonly last: number;
  /** The run lacks the chunks of removals up to this number. */
  readonly lastRemoval: number;
  readonly number: number;
  readonly head: MergedHead;
}

/** Writes of runs and their pages. Each runs inside a transaction of the caller, and each step of a generator. */
export interface RunWrites {
  /** Returns a number that no run had. Readers have caches by the numbers of runs. */
  nextNumber(): number;
  addPage(run: number, page: number, data: Buffer): void;
  /** Lists a run instead of the parts that it was merged from. Returns the numbers of the replaced runs. */
  exchange(exchange: Exchange): number[];
  /** Removes the pages of a run that is not listed. */
  removePages(run: number): Generator<undefined>;
  /** Removes pages of all runs that are not listed: of those that a crash left, and of merges that it ended. */
  sweep(): Generator<undefined>;
}

export function prepareRunWrites(db: Connection): RunWrites {
  const selectLastRun = db
    .prepare<[], number>("SELECT seq FROM sqlite_sequence WHERE name = 'word_run'")
    .pluck();
  const selectLastPage = db.prepare<[], number>("SELECT ifnull(max(number), 0) FROM word_page").pluck();
  const insertPage = db.prepare("INSERT INTO word_page (number, data) VALUES (?, ?)");
  const insertRun = db.prepare(
    "INSERT INTO word_run (number, scope, first, rows, sequences, lengths, directory, filter) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
  );
  const deleteRuns = db
    .prepare<[number, number, number], number>(
      "DELETE FROM word_run WHERE scope = ? AND first BETWEEN ? AND ? RETURNING number",
    )
    .pluck();
  const deleteSegments = db.prepare("DELETE FROM word_segment WHERE first_row BETWEEN ? AND ?");
  const deleteRemovals = db.prepare(
    "DELETE FROM word_removal WHERE scope = ? AND first BETWEEN ? AND ? AND number <= ?",
  );
  const noteMerged = db.prepare("UPDATE scope SET merged = merged + 1 WHERE number = ?");
  const selectPage = db
    .prepare<[number], number>("SELECT number FROM word_page WHERE number >= ? ORDER BY number LIMIT 1")
    .pluck();
  const selectRun = db.prepare<[number]>("SELECT 1 FROM word_run WHERE number = ?");
  const deletePages = db.prepare(
    "DELETE FROM word_page WHERE number IN (SELECT number FROM word_page WHERE number BETWEEN ? AND ? LIMIT ?)",
  );

  function* removePages(run: number): Generator<undefined> {
    const [first, last] = [pageNumber(run, 0), pageNumber(run + 1, 0) - 1];
    while (deletePages.run(first, last, PAGES_REMOVED).changes > 0) yield;
  }

  return {
    nextNumber: () =>
      Math.max(selectLastRun.get() ?? 0, Math.floor((selectLastPage.get() ?? 0) / RUN_PAGES_MAX)) + 1,
    addPage: (run, page, data) => void insertPage.run(pageNumber(run, page), data),
    exchange({ scope, first, last, lastRemoval, number, head }) {
      const replaced = deleteRuns.all(scope, first, last);
      deleteSegments.run(rowOf(scope, first), rowOf(scope, last));
      deleteRemovals.run(scope, first, last, lastRemoval);
      const { rows, sequences, lengths, directory, filter } = head;
      if (rows > 0) insertRun.run(number, scope, head.first, rows, sequences, lengths, directory, filter);
      noteMerged.run(scope);
      return replaced;
    },
    removePages,
    *sweep() {
      for (let page = selectPage.get(0); page !== undefined;) {
        const run = Math.floor(page / RUN_PAGES_MAX);
        if (selectRun.get(run) === undefined) yield* removePages(run);
        page = selectPage.get(pageNumber(run + 1, 0));
        yield;
      }
    },
  };
}

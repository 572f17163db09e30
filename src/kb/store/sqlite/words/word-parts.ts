import { makeRemoved, type Removed } from "../../../index/words/removed.ts";
import type { WalkedPart } from "../../../index/words/part.ts";
import { openRun, RUN_PAGES_MAX, type RunHead } from "../../../index/words/run.ts";
import { openSegment } from "../../../index/words/segment.ts";
import { rowOf, SEQUENCE_MAX } from "../../../index/rows.ts";
import type { Connection } from "../database/connection.ts";

/** A part of the index of words, as the database has it. */
export interface StoredPart {
  readonly kind: "segment" | "run";
  /** Names the part among those of its kind in the scope: number of the run, or sequence of the segment's first chunk. */
  readonly number: number;
  /** A sequence at or below that of its first chunk, and above those of the parts before. */
  readonly first: number;
  readonly part: WalkedPart;
  readonly removed: Removed;
  /** Memory that it takes while it is open. */
  readonly bytes: number;
}

interface RunRow extends RunHead {
  readonly first: number;
}

interface SegmentRow {
  readonly row: number;
  readonly data: Buffer;
}

/** Removed chunks: a range of sequences, within one part. */
export interface Removal {
  readonly number: number;
  readonly first: number;
  readonly last: number;
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

/** Bytes that a search needs for each chunk of a part: its saturation (word-search.ts), and whether it was removed. */
const CHUNK_BYTES = 9;

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
    const part = openRun(row, (from, to) =>
      selectPages.all(pageNumber(number, from), pageNumber(number, to)),
    );
    const { first, sequences, lengths, directory, filter } = row;
    const bytes = sequences.length + lengths.length + directory.length + filter.length;
    const all = bytes + part.rows * CHUNK_BYTES;
    return [{ kind: "run", number, first, part, removed: makeRemoved(part), bytes: all }];
  };
  const segmentOf = (data: Buffer, first: number): StoredPart => {
    const part = openSegment(data, first);
    const bytes = data.length + part.rows * CHUNK_BYTES;
    return { kind: "segment", number: first, first, part, removed: makeRemoved(part), bytes };
  };

  const parts: WordParts = {
    runs: (scope, known) => selectRuns.all(scope).flatMap((number) => known?.(number) ?? openedRun(number)),
    segments: (scope, from, known) =>
      selectSegments.all(rowOf(scope, from), rowOf(scope, SEQUENCE_MAX)).flatMap((row) => {
        const first = row - rowOf(scope, 0);
        return known?.(first) ?? segmentOf(selectSegment.get(row) ?? EMPTY, first);
      }),
    firstSegments(scope, countMax, bytesMax) {
      const found: StoredPart[] = [];
      let bytes = 0;
      for (const { row, data } of selectData.iterate(rowOf(scope, 0), rowOf(scope, SEQUENCE_MAX), countMax)) {
        found.push(segmentOf(data, row - rowOf(scope, 0)));
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

/** Marks removed chunks in the parts that hold them. Parts ascend by their first sequences. */
export function markRemoved(
  parts: readonly StoredPart[],
  removals: readonly { readonly first: number; readonly last: number }[],
): void {
  for (const { first, last } of removals) {
    let low = 0;
    let high = parts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >>> 1;
      if ((parts[middle]?.first ?? 0) <= first) low = middle;
      else high = middle - 1;
    }
    parts[low]?.removed.add(first, last);
  }
}

import { mergeParts } from "../../../index/words/merge.ts";
import { RUN_PAGES_MAX, type RunHead } from "../../../index/words/run.ts";
import { encodeSegment, SEGMENT_ROWS_MAX } from "../../../index/words/segment.ts";
import { scopeOfRow, rowOf } from "../../../index/rows.ts";
import type { Connection } from "../database/connection.ts";
import { markRemoved } from "./word-reads.ts";
import { pageNumber, prepareWordParts, type StoredPart } from "./word-parts.ts";

/** Segments of a scope that are merged into a run. */
const SEGMENTS_MERGED = 128;
/** Runs of about equal size that are merged into one: a chunk is rewritten once for each factor of eight of its scope. */
const RUNS_MERGED = 8;
/** Chunks of the smallest runs; see `levelOf`. */
const LEVEL_CHUNKS = 512;
/** A scope is rewritten when a quarter of the chunks in its index were removed, and at least so many. */
const REMOVED_SHARE_MAX = 0.25;
const REMOVED_MIN = 2048;
/** Segments and removals of a scope after which its merges are planned; counted for so many scopes. */
const CHANGES_NOTED = 32;
const SCOPES_NOTED = 10_000;
/** Time of a step of a merge, after which other writes run; it grows with the segments that wait, so that merges keep up. */
const STEP_MS = 5;
const STEP_MS_MAX = 50;
/** Pages of merged runs that a step removes. */
const PAGES_REMOVED = 100;

/** Writes of the index of words. Each runs inside a transaction of the caller. */
export interface WordWrites {
  /** Indexes chunks whose rows begin at `firstRow`, by these texts. Returns the words of each. */
  add(firstRow: number, texts: readonly string[]): number[];
  /** Removes the chunks of consecutive rows, which were added at once. */
  remove(firstRow: number, chunks: number): void;
  /** Whether merges may be due. */
  isDue(): boolean;
  /** Makes a step of the merges that are due. Returns false if none is. */
  step(): boolean;
  /** Makes merges of all scopes with removed chunks due, so that nothing of those remains. */
  purge(): void;
  /** Begins a merge anew that a failed transaction has undone in part. */
  abandon(): void;
}

export function prepareWordWrites(db: Connection): WordWrites {
  const insertSegment = db.prepare("INSERT INTO word_segment (first_row, data) VALUES (?, ?)");
  const insertRemoval = db.prepare("INSERT INTO word_removal (scope, first, last) VALUES (?, ?, ?)");
  const merges = prepareMerges(db);
  /** Scopes that may need a merge: at first the large ones, which a crash or an upgrade may have left without it. */
  const due = new Set(merges.largeScopes());
  /** Changes of scopes since their merges were last planned. */
  const changes = new Map<number, number>();
  /** Segments written since the last merge began. */
  let written = 0;
  let purges = false;
  let merge: Iterator<unknown> | undefined;
  let sweep: Iterator<unknown> | undefined = merges.orphan() === undefined ? undefined : merges.sweep();

  const note = (scope: number, count: number): void => {
    const noted = (changes.get(scope) ?? 0) + count;
    changes.set(scope, noted < CHANGES_NOTED ? noted : 0);
    if (noted >= CHANGES_NOTED) due.add(scope);
    if (changes.size > SCOPES_NOTED) changes.clear();
  };

  return {
    isDue: () => due.size > 0 || merge !== undefined || sweep !== undefined,
    add(firstRow, texts) {
      const words: number[] = [];
      for (let at = 0; at < texts.length; at += SEGMENT_ROWS_MAX) {
        const segment = encodeSegment(texts.slice(at, at + SEGMENT_ROWS_MAX));
        insertSegment.run(firstRow + at, segment.data);
        words.push(...segment.words);
        written++;
      }
      note(scopeOfRow(firstRow), Math.ceil(texts.length / SEGMENT_ROWS_MAX));
      return words;
    },
    remove(firstRow, chunks) {
      const scope = scopeOfRow(firstRow);
      const first = firstRow - rowOf(scope, 0);
      for (let at = 0; at < chunks; at += SEGMENT_ROWS_MAX) {
        insertRemoval.run(scope, first + at, first + Math.min(chunks, at + SEGMENT_ROWS_MAX) - 1);
      }
      note(scope, Math.ceil(chunks / SEGMENT_ROWS_MAX));
    },
    step() {
      const ms = Math.min(STEP_MS_MAX, STEP_MS * (1 + written / SEGMENTS_MERGED));
      for (const endMs = performance.now() + ms; performance.now() < endMs;) {
        if (sweep !== undefined) {
          if (sweep.next().done === true) sweep = undefined;
        } else if (merge !== undefined) {
          if (merge.next().done === true) [merge, sweep] = [undefined, merges.sweep()];
        } else {
          const [scope] = due;
          if (scope === undefined) return (purges = false);
          const parts = merges.plan(scope, purges);
          if (parts.length > 0) merge = merges.merge(scope, parts);
          else due.delete(scope);
          written = 0;
        }
      }
      return true;
    },
    purge() {
      purges = true;
      for (const scope of merges.scopesWithRemoved()) due.add(scope);
    },
    abandon() {
      merge = undefined;
      sweep = merges.sweep();
    },
  };
}

/** Prepares the merges of a scope's parts. */
function prepareMerges(db: Connection) {
  const stored = prepareWordParts(db);
  const plans = preparePlans(db);
  const runs = prepareRuns(db);
  return {
    ...plans,
    ...runs,

    /** Chooses parts of a scope to merge, consecutive ones by their sequences. Empty: none is due. */
    plan(scope: number, purges: boolean): StoredPart[] {
      if (plans.isWorn(scope, purges)) return [...stored.runs(scope), ...stored.segments(scope, 0)];
      if (plans.hasManySegments(scope)) return stored.segments(scope, 0);
      return plans.hasManyRuns(scope) ? stored.runs(scope).slice(-RUNS_MERGED) : [];
    },

    /**
     * Merges parts into a run in steps. Its pages are written under a number that is not listed yet. The last step exchanges
     * the parts for the run; chunks that were removed meanwhile stay marked.
     */
    *merge(scope: number, parts: readonly StoredPart[]): Generator<undefined> {
      const first = parts[0]?.first ?? 0;
      const last = lastSequence(parts.at(-1));
      const removals = stored.removals(scope, 0).filter((of) => of.first >= first && of.first <= last);
      markRemoved(parts, removals);
      const number = runs.nextNumber();
      let page = 0;
      const merge = mergeParts(parts);
      let next = merge.next();
      for (; next.done !== true; next = merge.next()) {
        for (const data of next.value) runs.addPage(pageNumber(number, page++), data);
        yield;
      }
      const lastRemoval = removals.at(-1)?.number ?? 0;
      runs.exchange({ scope, first, last, lastRemoval, number, head: next.value });
    },
  };
}

/** Prepares the decisions when to merge. */
function preparePlans(db: Connection) {
  const selectLarge = db
    .prepare<[], number>(`SELECT number FROM scope WHERE chunks >= ${SEGMENTS_MERGED}`)
    .pluck();
  const selectScopes = db.prepare<[], number>("SELECT DISTINCT scope FROM word_removal").pluck();
  const countSegments = db
    .prepare<[number, number], number>("SELECT count(*) FROM word_segment WHERE first_row BETWEEN ? AND ?")
    .pluck();
  const countRemoved = db
    .prepare<[number], number>("SELECT total(last - first + 1) FROM word_removal WHERE scope = ?")
    .pluck();
  const selectChunks = db.prepare<[number], number>("SELECT chunks FROM scope WHERE number = ?").pluck();
  const selectRows = db
    .prepare<[number], number>("SELECT rows FROM word_run WHERE scope = ? ORDER BY first")
    .pluck();
  return {
    largeScopes: (): number[] => selectLarge.all(),
    scopesWithRemoved: (): number[] => selectScopes.all(),
    /** Whether so many chunks of a scope were removed that all its parts are merged; `purges`: whether any was. */
    isWorn(scope: number, purges: boolean): boolean {
      const removed = countRemoved.get(scope) ?? 0;
      if (purges) return removed > 0;
      return removed > Math.max(REMOVED_MIN, (selectChunks.get(scope) ?? 0) * REMOVED_SHARE_MAX);
    },
    hasManySegments: (scope: number): boolean =>
      (countSegments.get(rowOf(scope, 0), rowOf(scope + 1, 0) - 1) ?? 0) >= SEGMENTS_MERGED,
    /** Whether the last runs of a scope are enough of one level. */
    hasManyRuns(scope: number): boolean {
      const levels = selectRows.all(scope).slice(-RUNS_MERGED).map(levelOf);
      return levels.length === RUNS_MERGED && levels.every((level) => level === levels[0]);
    },
  };
}

/** A merged run, and the parts that it replaces: those between two sequences. */
interface Exchange {
  readonly scope: number;
  readonly first: number;
  readonly last: number;
  /** The run lacks the chunks of removals up to this number. */
  readonly lastRemoval: number;
  readonly number: number;
  readonly head: RunHead;
}

/** Prepares the writes of runs and their pages. */
function prepareRuns(db: Connection) {
  // Numbers of runs are never used again: readers have caches by them.
  const selectLastRun = db
    .prepare<[], number>("SELECT seq FROM sqlite_sequence WHERE name = 'word_run'")
    .pluck();
  const selectLastPage = db.prepare<[], number>("SELECT ifnull(max(number), 0) FROM word_page").pluck();
  const insertPage = db.prepare("INSERT INTO word_page (number, data) VALUES (?, ?)");
  const insertRun = db.prepare(
    "INSERT INTO word_run (number, scope, first, rows, sequences, lengths, directory, filter) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
  );
  const deleteRuns = db.prepare("DELETE FROM word_run WHERE scope = ? AND first BETWEEN ? AND ?");
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

  /** Returns the first run that is not listed but has pages. */
  const orphan = (): number | undefined => {
    for (let from = 0; ;) {
      const page = selectPage.get(from);
      if (page === undefined) return undefined;
      const run = Math.floor(page / RUN_PAGES_MAX);
      if (selectRun.get(run) === undefined) return run;
      from = pageNumber(run + 1, 0);
    }
  };

  return {
    orphan,
    nextNumber: (): number =>
      Math.max(selectLastRun.get() ?? 0, Math.floor((selectLastPage.get() ?? 0) / RUN_PAGES_MAX)) + 1,
    addPage: (number: number, data: Buffer): void => void insertPage.run(number, data),
    exchange({ scope, first, last, lastRemoval, number, head }: Exchange): void {
      deleteRuns.run(scope, first, last);
      deleteSegments.run(rowOf(scope, first), rowOf(scope, last));
      deleteRemovals.run(scope, first, last, lastRemoval);
      const rows = head.lengths.length / 2;
      if (rows > 0) {
        const begin = head.sequences.readUInt32LE(0);
        const { sequences, lengths, directory, filter } = head;
        insertRun.run(number, scope, begin, rows, sequences, lengths, directory, filter);
      }
      noteMerged.run(scope);
    },
    /** Removes pages of no run in steps: of runs that were merged, and of merges that a crash ended. */
    *sweep(): Generator<undefined> {
      for (let run = orphan(); run !== undefined; run = orphan()) {
        while (deletePages.run(pageNumber(run, 0), pageNumber(run + 1, 0) - 1, PAGES_REMOVED).changes > 0)
          yield;
      }
    },
  };
}

/** Sequence of the last chunk of a part. */
function lastSequence(of: StoredPart | undefined): number {
  return of === undefined ? -1 : of.part.sequence(of.part.rows - 1);
}

/** Runs of one level are merged with each other; each level has eight times as many chunks as the one below. */
function levelOf(rows: number): number {
  return Math.max(0, Math.floor(Math.log2(rows / LEVEL_CHUNKS) / Math.log2(RUNS_MERGED)));
}

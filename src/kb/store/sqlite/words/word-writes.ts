import { encodeSegment, SEGMENT_ROWS_MAX } from "../../../index/words/segment.ts";
import { scopeOfRow, rowOf } from "../../../index/rows.ts";
import { SEGMENTS_MERGED } from "../../search/merge-rules.ts";
import type { Connection } from "../database/connection.ts";
import { openScopeNotes } from "../scopes/scope-notes.ts";
import { prepareScopeMerges } from "./scope-merges.ts";

/** Segments and removals of a scope after which its merges are planned. */
const CHANGES_NOTED = 32;
/** Time of a step of a merge, after which other writes run; it grows with the segments that wait, so that merges keep up. */
const STEP_MS = 5;
const STEP_MS_MAX = 50;

/** Writes of the index of words. Each runs inside a transaction of the caller. */
export interface WordWrites {
  /** Indexes chunks whose rows begin at `firstRow`, by these texts. Returns the words of each. */
  add(firstRow: number, texts: readonly string[]): number[];
  /** Removes the chunks of consecutive rows, which were added at once. The scope still counts them. */
  remove(firstRow: number, chunks: number): void;
  /** Whether merges may be due. */
  isDue(): boolean;
  /** Makes a step of the merges that are due. Returns false if none is. */
  step(): boolean;
  /**
   * Returns steps of the merges after which nothing remains of the chunks that are removed by now. The steps return false when
   * they have ended; those of `step` may run in between.
   */
  purge(): () => boolean;
  /** Gives up the merge that a failed transaction has undone in part. It is due again after further changes of its scope. */
  abandon(): void;
}

/** A merge that is being made. */
interface Merging {
  readonly scope: number;
  readonly steps: Iterator<undefined>;
}

/** `now` returns milliseconds that only grow. */
export function prepareWordWrites(
  db: Connection,
  now: () => number = performance.now.bind(performance),
): WordWrites {
  const insertSegment = db.prepare("INSERT INTO word_segment (first_row, data) VALUES (?, ?)");
  const insertRemoval = db.prepare("INSERT INTO word_removal (scope, first, last) VALUES (?, ?, ?)");
  const merges = prepareScopeMerges(db);
  const due = new Set(merges.unmerged());
  const note = openScopeNotes(due, CHANGES_NOTED);
  /** Segments written since the last merge began. */
  let written = 0;
  let merging: Merging | undefined;
  /** Removes what a crash or a failed transaction left of merges. */
  let sweep: Iterator<undefined> | undefined = merges.sweep();
  let isUnswept = false;

  /** Begins the next merge of these scopes. Returns false if none is due. */
  function begin(scopes: Set<number>, purged: number): boolean {
    if (isUnswept) {
      sweep = merges.sweep();
      isUnswept = false;
      return true;
    }
    const [scope] = scopes;
    if (scope === undefined) return false;
    // Now, because a damaged part throws.
    scopes.delete(scope);
    const steps = merges.next(scope, purged);
    if (steps !== undefined) {
      // Behind the others, so that scopes take turns.
      scopes.add(scope);
      merging = { scope, steps };
    }
    written = 0;
    return true;
  }
  function stepOf(scopes: Set<number>, purged: number): boolean {
    const ms = Math.min(STEP_MS_MAX, STEP_MS * (1 + written / SEGMENTS_MERGED));
    for (const endMs = now() + ms; now() < endMs;) {
      if (sweep !== undefined) {
        if (sweep.next().done === true) sweep = undefined;
      } else if (merging !== undefined) {
        if (merging.steps.next().done === true) merging = undefined;
      } else if (!begin(scopes, purged)) return false;
    }
    return true;
  }

  return {
    isDue: () => due.size > 0 || merging !== undefined || sweep !== undefined,
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
      // Nothing else would happen to an owner without documents.
      if (merges.chunks(scope) <= chunks) due.add(scope);
    },
    step: () => stepOf(due, 0),
    purge() {
      const last = merges.lastRemoval();
      const scopes = new Set(merges.scopesWithRemoved());
      return () => stepOf(scopes, last);
    },
    abandon() {
      if (merging !== undefined) due.delete(merging.scope);
      [merging, sweep] = [undefined, undefined];
      isUnswept = true;
    },
  };
}

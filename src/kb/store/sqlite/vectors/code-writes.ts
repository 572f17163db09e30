import { packRun } from "../../../index/code-run.ts";
import { encodeAll } from "../../../index/codes.ts";
import { rowsOfScope } from "../../../index/rows.ts";
import type { Connection } from "../database/connection.ts";
import { openScopeNotes } from "../scopes/scope-notes.ts";
import { prepareCodeReads } from "./code-reads.ts";
import { unpack, type StoredVector } from "../../search/means.ts";
import { meanOf, prepareVectorRange } from "./stored-vectors.ts";

/** Vectors of a run; packing one takes about 20 ms. */
export const RUN_VECTORS = 4096;
/** A run has codes for all chunks of its range but an eighth: those whose vectors come later are changes of it. */
const LACKING_MAX = RUN_VECTORS / 8;
/** Changed rows of a scope after which its runs are rewritten: a start reads the vectors of such rows. */
const CHANGED_MIN = 1024;
const CHANGED_SHARE_MAX = 0.02;
/** Vectors and changes of a scope after which its runs are planned. */
const NOTED = 1024;

/** Writes of stored codes. Each runs inside a transaction of the caller. */
export interface CodeWrites {
  /** Notes that vectors of a range of rows were added, replaced or removed. */
  change(scope: number, firstRow: number, lastRow: number): void;
  /** Removes the codes of a model. */
  drop(model: number): void;
  /** Whether runs may be due. */
  isDue(): boolean;
  /** Writes one of the runs that are due. Returns false if none is. */
  step(): boolean;
  /** Returns steps after which no run has codes of vectors that are removed by now; they return false when they have ended. */
  purge(): () => boolean;
  /** Gives up what a failed transaction has undone in part. */
  abandon(): void;
}

export function prepareCodeWrites(db: Connection): CodeWrites {
  const insertChange = db.prepare(`
    INSERT INTO code_change (scope, first_row, last_row) SELECT @scope, @firstRow, @lastRow
    WHERE EXISTS (SELECT 1 FROM code_run WHERE scope = @scope AND last_row >= @firstRow)`);
  const dropModel = db.prepare("DELETE FROM code_run WHERE model = ?");
  const selectChanged = db.prepare<[], number>("SELECT DISTINCT scope FROM code_change").pluck();
  const selectLarge = db
    .prepare<[number], number>("SELECT number FROM scope WHERE chunks >= ? AND serving_model IS NOT NULL")
    .pluck();
  const runs = prepareRuns(db);
  const due = new Set([...selectLarge.all(RUN_VECTORS), ...selectChanged.all()]);
  const note = openScopeNotes(due, NOTED);
  let rewriting: Iterator<undefined> | undefined;

  return {
    change(scope, firstRow, lastRow) {
      insertChange.run({ scope, firstRow, lastRow });
      note(scope, lastRow - firstRow + 1);
    },
    drop: (model) => void dropModel.run(model),
    isDue: () => due.size > 0 || rewriting !== undefined,
    step() {
      if (rewriting !== undefined) {
        if (rewriting.next().done === true) rewriting = undefined;
        return true;
      }
      const [scope] = due;
      if (scope === undefined) return false;
      due.delete(scope);
      // Behind the others, so that scopes take turns.
      if (runs.add(scope)) due.add(scope);
      else if (runs.isWorn(scope)) rewriting = runs.rewrite(scope);
      return true;
    },
    purge() {
      const scopes = selectChanged.all();
      let steps: Iterator<undefined> | undefined;
      return () => {
        if (steps?.next().done === false) return true;
        const scope = scopes.pop();
        steps = scope === undefined ? undefined : runs.rewrite(scope);
        return steps !== undefined;
      };
    },
    abandon: () => {
      rewriting = undefined;
    },
  };
}

/** Prepares the writes of the runs of one scope. */
function prepareRuns(db: Connection) {
  const vectors = prepareVectorRange(db);
  const selectScope = db.prepare<[number], { model: number | null; chunks: number }>(
    "SELECT serving_model AS model, chunks FROM scope WHERE number = ?",
  );
  const reads = prepareCodeReads(db);
  const setMean = db.prepare("UPDATE embedding_model SET mean = ? WHERE number = ?");
  const selectEnd = db
    .prepare<[number, number], number>(
      "SELECT last_row FROM code_run WHERE scope = ? AND model = ? ORDER BY last_row DESC LIMIT 1",
    )
    .pluck();
  const selectNextEnd = db
    .prepare<[number, number, number], number>(
      `SELECT row FROM vector WHERE row BETWEEN ? AND ? AND model = ? ORDER BY row LIMIT 1 OFFSET ${RUN_VECTORS - 1}`,
    )
    .pluck();
  const countChunks = db
    .prepare<[number, number], number>("SELECT count(*) FROM chunk WHERE row BETWEEN ? AND ?")
    .pluck();
  const insertRun = db.prepare(
    "INSERT INTO code_run (scope, model, first_row, last_row, data) VALUES (?, ?, ?, ?, ?)",
  );
  const selectRuns = db.prepare<
    [{ scope: number; last: number }],
    { number: number; model: number; first: number; last: number }
  >(`
    SELECT number, model, first_row AS first, last_row AS last FROM code_run WHERE scope = @scope
      AND EXISTS (
        SELECT 1 FROM code_change WHERE code_change.scope = @scope AND code_change.number <= @last
          AND code_change.first_row <= code_run.last_row AND code_change.last_row >= code_run.first_row)`);
  const updateRun = db.prepare("UPDATE code_run SET data = ? WHERE number = ?");
  const deleteRun = db.prepare("DELETE FROM code_run WHERE number = ?");
  const countChanged = db
    .prepare<[number], number>("SELECT total(last_row - first_row + 1) FROM code_change WHERE scope = ?")
    .pluck();
  const selectLastChange = db
    .prepare<[number], number>("SELECT ifnull(max(number), 0) FROM code_change WHERE scope = ?")
    .pluck();
  const deleteChanges = db.prepare("DELETE FROM code_change WHERE scope = ? AND number <= ?");

  /** Packs the codes of these rows; undefined: there are none. */
  function pack(firstRow: number, rows: readonly StoredVector[], mean: Float32Array): Buffer | undefined {
    if (rows.length === 0) return undefined;
    const unpacked = rows.values().map(([, value]) => unpack(value));
    return packRun({
      offsets: Uint32Array.from(rows, ([row]) => row - firstRow),
      codes: encodeAll(unpacked, rows.length, mean),
    });
  }

  return {
    /** Writes the next run of a scope. Returns false if it has not enough vectors behind the last one. */
    add(scope: number): boolean {
      const { model = null } = selectScope.get(scope) ?? {};
      if (model === null) return false;
      const { first, last } = rowsOfScope(scope);
      const from = (selectEnd.get(scope, model) ?? first - 1) + 1;
      const end = selectNextEnd.get(from, last, model);
      if (end === undefined || (countChunks.get(from, end) ?? 0) - RUN_VECTORS > LACKING_MAX) return false;
      let mean = reads.meanOfModel(model);
      if (mean === undefined) {
        mean = meanOf(vectors, from, end + 1, model);
        setMean.run(Buffer.from(mean.buffer), model);
      }
      insertRun.run(scope, model, from, end, pack(from, vectors.all(from, end, model, -1), mean));
      return true;
    },
    /** Whether so many vectors of a scope have changed that its runs are rewritten. */
    isWorn(scope: number): boolean {
      const changed = countChanged.get(scope) ?? 0;
      const { chunks = 0 } = selectScope.get(scope) ?? {};
      return chunks === 0 ? changed > 0 : changed > Math.max(CHANGED_MIN, chunks * CHANGED_SHARE_MAX);
    },
    /** Rewrites the runs whose vectors have changed by now, in steps. */
    *rewrite(scope: number): Generator<undefined> {
      const last = selectLastChange.get(scope) ?? 0;
      for (const run of selectRuns.all({ scope, last })) {
        const mean = reads.meanOfModel(run.model);
        const data = mean && pack(run.first, vectors.all(run.first, run.last, run.model, -1), mean);
        if (data === undefined) deleteRun.run(run.number);
        else updateRun.run(data, run.number);
        yield;
      }
      deleteChanges.run(scope, last);
    },
  };
}

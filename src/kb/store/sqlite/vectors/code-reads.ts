import { unpackRun, type CodeRun } from "../../../index/code-run.ts";
import { codeWords } from "../../../index/codes.ts";
import type { RowRange } from "../../../index/rows.ts";
import type { Connection } from "../database/connection.ts";

/** A run of codes, and the range of rows whose vectors it has. */
export interface StoredRun extends RowRange {
  readonly run: CodeRun;
}

/** Reads of stored codes. */
export interface CodeReads {
  /** The mean that the codes of a model are centred on; undefined: there are no codes of it. */
  meanOfModel(model: number): Float32Array | undefined;
  /** The next runs of a scope from a row on, ascending. Throws `DamagedIndex`. */
  runs(scope: number, model: number, fromRow: number, mean: Float32Array, limit: number): StoredRun[];
  /** Ranges of rows of a scope whose vectors may differ from what the runs have; ascending, and they may overlap. */
  changes(scope: number): RowRange[];
}

export function prepareCodeReads(db: Connection): CodeReads {
  const selectMean = db
    .prepare<[number], Buffer | null>("SELECT mean FROM embedding_model WHERE number = ?")
    .pluck();
  const selectRuns = db.prepare<
    [number, number, number, number],
    { first_row: number; last_row: number; data: Buffer }
  >(`
    SELECT first_row, last_row, data FROM code_run WHERE scope = ? AND last_row >= ? AND model = ?
    ORDER BY last_row LIMIT ?`);
  const selectChanges = db.prepare<[number], RowRange>(
    "SELECT first_row AS first, last_row AS last FROM code_change WHERE scope = ? ORDER BY first_row",
  );
  return {
    meanOfModel(model) {
      const bytes = selectMean.get(model);
      return bytes === undefined || bytes === null
        ? undefined
        : new Float32Array(Uint8Array.from(bytes).buffer);
    },
    runs: (scope, model, fromRow, mean, limit) =>
      selectRuns.all(scope, fromRow, model, limit).map(({ first_row: first, last_row: last, data }) => ({
        first,
        last,
        run: unpackRun(data, codeWords(mean.length)),
      })),
    changes: (scope) => selectChanges.all(scope),
  };
}

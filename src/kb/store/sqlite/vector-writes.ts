import { KbsyncError } from "../../../lib/failure.ts";
import type { Chunking, RowVector } from "../store.ts";
import type { Connection } from "./connection.ts";
import { quantize } from "./quantized.ts";
import { scopeOfRow } from "./rows.ts";

/** Changes noted for searchers; one that missed more than these reads its vectors anew. */
const CHANGES_KEPT = 20_000;

/** Writes of vectors; each runs inside a transaction of the caller. */
export interface VectorWrites {
  /** Vectors of consecutive rows of one scope. */
  addRange(scope: number, firstRow: number, vectors: readonly Float32Array[], fingerprint: string): void;
  removeRange(scope: number, firstRow: number, lastRow: number): void;
  /** Vectors of any rows; one of a chunk that is gone meanwhile is left out, an older one is replaced. */
  put(fingerprint: string, vectors: readonly RowVector[]): void;
}

/** Prepares the statements on the writing connection. */
export function prepareVectorWrites(db: Connection): VectorWrites {
  const selectModel = db
    .prepare<[string], number>("SELECT number FROM embedding_model WHERE fingerprint = ?")
    .pluck();
  const insertModel = db.prepare("INSERT INTO embedding_model (fingerprint) VALUES (?)");
  const insert = db.prepare(`
    INSERT INTO vector (row, model, value) SELECT @row, @model, @value
    WHERE EXISTS (SELECT 1 FROM chunk WHERE chunk.row = @row)
    ON CONFLICT (row, model) DO UPDATE SET value = excluded.value`);
  const deleteRange = db.prepare("DELETE FROM vector WHERE row BETWEEN ? AND ?");
  const note = db.prepare("INSERT INTO vector_change (scope, first_row, last_row) VALUES (?, ?, ?)");
  const forget = db.prepare("DELETE FROM vector_change WHERE number <= ?");

  const model = (fingerprint: string): number =>
    selectModel.get(fingerprint) ?? Number(insertModel.run(fingerprint).lastInsertRowid);
  const noteRange = (scope: number, first: number, last: number): void => {
    const number = Number(note.run(scope, first, last).lastInsertRowid);
    if (number % 1000 === 0) forget.run(number - CHANGES_KEPT);
  };

  return {
    addRange(scope, firstRow, vectors, fingerprint) {
      if (vectors.length === 0) return;
      const number = model(fingerprint);
      for (const [at, vector] of vectors.entries()) {
        insert.run({ row: firstRow + at, model: number, value: quantize(vector) });
      }
      noteRange(scope, firstRow, firstRow + vectors.length - 1);
    },
    removeRange(scope, firstRow, lastRow) {
      if (deleteRange.run(firstRow, lastRow).changes > 0) noteRange(scope, firstRow, lastRow);
    },
    put(fingerprint, vectors) {
      const number = model(fingerprint);
      for (const { row, vector } of vectors) {
        const { changes } = insert.run({ row, model: number, value: quantize(vector) });
        if (changes > 0) noteRange(scopeOfRow(row), row, row);
      }
    },
  };
}

/** Writes the vectors of a chunking whose chunks begin at `firstRow`. */
export function writeVectors(
  writes: VectorWrites,
  scope: number,
  firstRow: number,
  chunking: Chunking,
): void {
  const { spans, vectors, fingerprint } = chunking;
  if (vectors === undefined) return;
  if (fingerprint === undefined || vectors.length !== spans.length) {
    throw new KbsyncError(`a chunking of ${spans.length} spans came with ${vectors.length} vectors`, {
      code: "internal",
      hint: "One vector a span and their fingerprint were expected.",
    });
  }
  writes.addRange(scope, firstRow, vectors, fingerprint);
}

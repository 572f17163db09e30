import type { ChunkSentences } from "../../search-index.ts";
import type { Inside } from "../../methods.ts";
import type { Connection } from "../database/connection.ts";
import { quantize } from "../../../index/quantized.ts";
import { scopeOfRow } from "../../../index/rows.ts";
import { packSentences } from "../../../index/sentence-codes.ts";
import type { CodeWrites } from "./code-writes.ts";

/** Length of the change log for readers. A reader that missed more reads its vectors again. */
const CHANGES_MAX = 20_000;

/** Writes of vectors. Each runs inside a transaction of the caller. `removeRange` removes sentence vectors too. */
export type VectorWrites = Pick<Inside<"write">["index"], "putVectors" | "putSentences"> & {
  /** Logs that vectors of a range of rows were added or removed. */
  noteRange(scope: number, firstRow: number, lastRow: number): void;
  removeRange(scope: number, firstRow: number, lastRow: number): void;
  /** Moves the vectors of a range of rows, and whether they are stale, to the rows from `toRow` on, whose chunks exist. */
  moveRange(scope: number, firstRow: number, lastRow: number, toRow: number): void;
};

/** Prepares the statements on the writing connection. */
export function prepareVectorWrites(db: Connection, codes: Pick<CodeWrites, "change">): VectorWrites {
  const selectModel = db
    .prepare<[string], number>("SELECT number FROM embedding_model WHERE fingerprint = ?")
    .pluck();
  const insertModel = db.prepare("INSERT INTO embedding_model (fingerprint) VALUES (?)");
  const insert = db.prepare(`
    INSERT INTO vector (row, model, value) SELECT @row, @model, @value
    WHERE EXISTS (SELECT 1 FROM chunk WHERE chunk.row = @row)
      AND NOT EXISTS (SELECT 1 FROM stale_vector WHERE stale_vector.row = @row AND revision IS NOT @staleSince)
    ON CONFLICT (row, model) DO UPDATE SET value = excluded.value`);
  const deleteRange = db.prepare("DELETE FROM vector WHERE row BETWEEN ? AND ?");
  const deleteStale = db.prepare("DELETE FROM stale_vector WHERE row BETWEEN ? AND ?");
  const freshen = db.prepare("DELETE FROM stale_vector WHERE row = ? AND revision = ?");
  const deleteOthers = db.prepare("DELETE FROM vector WHERE row = ? AND model <> ?");
  // The first model that gives a scope a vector serves it.
  const serveFirst = db.prepare(
    "UPDATE scope SET serving_model = ? WHERE number = ? AND serving_model IS NULL",
  );
  const note = db.prepare("INSERT INTO vector_change (scope, first_row, last_row) VALUES (?, ?, ?)");
  const forget = db.prepare("DELETE FROM vector_change WHERE number <= ?");

  const moves = ["vector", "sentence_vectors", "stale_vector"].map((table) =>
    db.prepare(`UPDATE ${table} SET row = row + @by WHERE row BETWEEN @firstRow AND @lastRow`),
  );

  const sentences = prepareSentenceWrites(db);

  const model = (fingerprint: string): number =>
    selectModel.get(fingerprint) ?? Number(insertModel.run(fingerprint).lastInsertRowid);
  const noteRange = (scope: number, first: number, last: number): void => {
    const number = Number(note.run(scope, first, last).lastInsertRowid);
    if (number % 1000 === 0) forget.run(number - CHANGES_MAX);
    codes.change(scope, first, last);
  };

  return {
    noteRange,
    removeRange(scope, firstRow, lastRow) {
      deleteStale.run(firstRow, lastRow);
      if (deleteRange.run(firstRow, lastRow).changes > 0) noteRange(scope, firstRow, lastRow);
      sentences.removeRange(firstRow, lastRow);
    },
    moveRange(scope, firstRow, lastRow, toRow) {
      const by = toRow - firstRow;
      const moved = moves.map((move) => move.run({ by, firstRow, lastRow }).changes);
      if (moved[0] === 0) return;
      noteRange(scope, firstRow, lastRow);
      noteRange(scope, toRow, lastRow + by);
    },
    putSentences(fingerprint, chunks) {
      if (chunks.length > 0) sentences.put(model(fingerprint), chunks);
    },
    putVectors(fingerprint, vectors) {
      const number = model(fingerprint);
      for (const { ref: row, vector, staleSince } of vectors) {
        const value = quantize(vector);
        const { changes } = insert.run({ row, model: number, value, staleSince: staleSince ?? null });
        if (changes === 0) continue;
        // The chunk is no longer stale, so vectors of other models, which are still of the older title, are removed.
        if (staleSince !== undefined && freshen.run(row, staleSince).changes > 0)
          deleteOthers.run(row, number);
        noteRange(scopeOfRow(row), row, row);
        serveFirst.run(number, scopeOfRow(row));
      }
    },
  };
}

/** Writes of sentence vectors. Each runs inside a transaction of the caller. */
interface SentenceWrites {
  /** `model` is the number of the embedding model. Ignores chunks that no longer exist. */
  put(model: number, chunks: readonly ChunkSentences[]): void;
  removeRange(firstRow: number, lastRow: number): void;
}

/** Prepares the statements on the writing connection. */
function prepareSentenceWrites(db: Connection): SentenceWrites {
  const insert = db.prepare(`
    INSERT INTO sentence_vectors (row, model, vectors) SELECT @row, @model, @vectors
    WHERE EXISTS (SELECT 1 FROM chunk WHERE chunk.row = @row)
    ON CONFLICT (row) DO UPDATE SET model = excluded.model, vectors = excluded.vectors`);
  const deleteRange = db.prepare("DELETE FROM sentence_vectors WHERE row BETWEEN ? AND ?");
  return {
    put(model, chunks) {
      for (const { ref: row, vectors } of chunks) insert.run({ row, model, vectors: packSentences(vectors) });
    },
    removeRange(firstRow, lastRow) {
      deleteRange.run(firstRow, lastRow);
    },
  };
}

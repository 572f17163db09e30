import type { RowSentences } from "../../sentences.ts";
import type { Connection } from "../database/connection.ts";
import { packSentences } from "../../../index/sentence-codes.ts";

/** Writes of sentence vectors; each runs inside a transaction of the caller. */
export interface SentenceWrites {
  /** `model` is the number of the embedding model. One of a chunk that is gone is left out. */
  put(model: number, chunks: readonly RowSentences[]): void;
  removeRange(firstRow: number, lastRow: number): void;
}

/** Prepares the statements on the writing connection. */
export function prepareSentenceWrites(db: Connection): SentenceWrites {
  const insert = db.prepare(`
    INSERT INTO sentence_vectors (row, model, vectors) SELECT @row, @model, @vectors
    WHERE EXISTS (SELECT 1 FROM chunk WHERE chunk.row = @row)
    ON CONFLICT (row) DO UPDATE SET model = excluded.model, vectors = excluded.vectors`);
  const deleteRange = db.prepare("DELETE FROM sentence_vectors WHERE row BETWEEN ? AND ?");
  return {
    put(model, chunks) {
      for (const { row, vectors } of chunks) insert.run({ row, model, vectors: packSentences(vectors) });
    },
    removeRange(firstRow, lastRow) {
      deleteRange.run(firstRow, lastRow);
    },
  };
}

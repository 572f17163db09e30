import type { SentenceMatch, ChunkText, VectorHit } from "../../search-index.ts";
import type { Connection } from "../database/connection.ts";
import { dimensionsOf, dotQuantized } from "../../../index/quantized.ts";
import { bestSentence } from "../../../index/sentence-codes.ts";
import type { RowRange } from "../../../index/rows.ts";

/** Reads of the vectors of single chunks and their sentences. */
export interface SentenceReads {
  readonly cosines: (
    range: RowRange,
    fingerprint: string,
    vector: Float32Array,
    rows: readonly number[],
  ) => VectorHit[];
  readonly matches: (
    range: RowRange,
    fingerprint: string,
    vector: Float32Array,
    rows: readonly number[],
  ) => SentenceMatch[];
  readonly missing: (fingerprint: string, afterRow: number, limit: number) => ChunkText[];
}

/** Prepares the statements on a connection of either kind. */
export function prepareSentenceReads(db: Connection): SentenceReads {
  const selectModel = db
    .prepare<[string], number>("SELECT number FROM embedding_model WHERE fingerprint = ?")
    .pluck();
  const selectVector = db
    .prepare<[number, number], Buffer>("SELECT value FROM vector WHERE row = ? AND model = ?")
    .pluck();
  const selectSentences = db
    .prepare<[number, number], Buffer>("SELECT vectors FROM sentence_vectors WHERE row = ? AND model = ?")
    .pluck();
  // CROSS JOIN fixes the order of the loops, scopes by number and their chunks by row, so that nothing is sorted.
  const selectMissing = db.prepare<{ model: number; after: number; limit: number }, ChunkText>(`
    SELECT chunk.row AS ref, chunk.text,
      (SELECT account_id FROM collection WHERE collection.id = scope.collection_id) AS accountId
    FROM scope
      CROSS JOIN chunk ON chunk.row BETWEEN max(scope.number << 32, @after + 1) AND (scope.number << 32) + 4294967295
    WHERE scope.number >= @after >> 32
      AND (SELECT tier FROM collection WHERE collection.id = scope.collection_id) = 'high_accuracy'
      AND NOT EXISTS (SELECT 1 FROM sentence_vectors AS sentences WHERE sentences.row = chunk.row AND model = @model)
    ORDER BY scope.number, chunk.row LIMIT @limit`);

  return {
    cosines({ first, last }, fingerprint, vector, rows) {
      const model = selectModel.get(fingerprint);
      if (model === undefined) return [];
      return rows.flatMap((row) => {
        const value = row < first || row > last ? undefined : selectVector.get(row, model);
        if (value === undefined || dimensionsOf(value) !== vector.length) return [];
        return { ref: row, cosine: dotQuantized(vector, value) };
      });
    },
    matches({ first, last }, fingerprint, vector, rows) {
      const model = selectModel.get(fingerprint);
      if (model === undefined) return [];
      return rows.flatMap((row) => {
        const packed = row < first || row > last ? undefined : selectSentences.get(row, model);
        const cosine = packed && bestSentence(vector, packed);
        return cosine === undefined ? [] : { ref: row, cosine };
      });
    },
    // No model has number 0: a model without a number has made no vector yet, so every chunk is missing.
    missing: (fingerprint, after, limit) =>
      selectMissing.all({ model: selectModel.get(fingerprint) ?? 0, after, limit }),
  };
}

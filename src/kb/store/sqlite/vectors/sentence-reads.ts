import type { SentenceMatch, VectorHit } from "../../search-index.ts";
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
  };
}

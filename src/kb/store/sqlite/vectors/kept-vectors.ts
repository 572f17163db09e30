import type { Span } from "../../records.ts";
import type { Connection } from "../database/connection.ts";
import { joinHeadings, type Part } from "../database/parts.ts";
import type { ResourceRow } from "../database/records.ts";
import type { VectorWrites } from "./vector-writes.ts";

/** What is kept of the chunks of a version that is replaced, by what they were embedded from. */
export type KeptVectors = ReadonlyMap<string, KeptChunk>;

interface KeptChunk {
  readonly vectors: readonly { readonly model: number; readonly value: Buffer }[];
  readonly sentences: { readonly model: number; readonly vectors: Buffer } | undefined;
}

/** Carries vectors over to the chunks of the next version that did not change; inside a transaction of the caller. */
export interface KeptVectorWrites {
  /** What the present chunks have, but for those whose vectors are of an older title. */
  take(resource: Pick<ResourceRow, "first_row" | "chunks">): KeptVectors;
  /** Gives it to the chunks of the next version that have none yet. */
  give(
    kept: KeptVectors,
    scope: number,
    firstRow: number,
    parts: readonly Part[],
    spans: readonly Span[],
  ): void;
  /**
   * Notes that the chunks' vectors are of an older title, those too that are being made; `revision` of the row is the one
   * before the change.
   */
  markStale(resource: Pick<ResourceRow, "first_row" | "chunks" | "revision" | "tier">): void;
}

/** Prepares the statements on the writing connection. */
export function prepareKeptVectors(db: Connection, vectors: VectorWrites): KeptVectorWrites {
  const selectChunks = db.prepare<[number, number], { row: number; headings: string; text: string }>(`
    SELECT row, headings, text FROM chunk WHERE row BETWEEN ? AND ?
      AND NOT EXISTS (SELECT 1 FROM stale_vector WHERE stale_vector.row = chunk.row)`);
  const selectVectors = db.prepare<[number], { model: number; value: Buffer }>(
    "SELECT model, value FROM vector WHERE row = ?",
  );
  const selectSentences = db.prepare<[number], { model: number; vectors: Buffer }>(
    "SELECT model, vectors FROM sentence_vectors WHERE row = ?",
  );
  const insertVector = db.prepare(
    "INSERT INTO vector (row, model, value) VALUES (?, ?, ?) ON CONFLICT (row, model) DO NOTHING",
  );
  const insertSentences = db.prepare(
    "INSERT INTO sentence_vectors (row, model, vectors) VALUES (?, ?, ?) ON CONFLICT (row) DO NOTHING",
  );
  const insertStale = db.prepare(`
    INSERT INTO stale_vector (row, revision)
    SELECT row, ? FROM chunk WHERE row BETWEEN ? AND ?
    ON CONFLICT (row) DO UPDATE SET revision = excluded.revision`);
  const keyOf = (headings: string, text: string): string => `${headings}\n${text}`;

  return {
    take({ first_row: first, chunks }) {
      const kept = new Map<string, KeptChunk>();
      for (const { row, headings, text } of selectChunks.all(first, first + chunks - 1)) {
        const of = selectVectors.all(row);
        if (of.length > 0)
          kept.set(keyOf(headings, text), { vectors: of, sentences: selectSentences.get(row) });
      }
      return kept;
    },
    give(kept, scope, firstRow, parts, spans) {
      if (kept.size === 0) return;
      for (const [at, { text }] of parts.entries()) {
        const found = kept.get(keyOf(joinHeadings(spans[at] ?? { headings: [] }), text));
        if (found === undefined) continue;
        const row = firstRow + at;
        for (const { model, value } of found.vectors) insertVector.run(row, model, value);
        if (found.sentences !== undefined)
          insertSentences.run(row, found.sentences.model, found.sentences.vectors);
      }
      vectors.noteRange(scope, firstRow, firstRow + parts.length - 1);
    },
    markStale({ first_row: first, chunks, revision, tier }) {
      // No chunk of this tier ever gets a vector.
      if (tier === "fastest") return;
      insertStale.run(revision + 1, first, first + chunks - 1);
    },
  };
}

import type { Span } from "../../chunks.ts";
import type { Connection } from "../database/connection.ts";
import { joinHeadings, vectorKey, type Part } from "../../rows/parts.ts";
import type { ResourceRow } from "../../rows/records.ts";
import type { VectorWrites } from "./vector-writes.ts";

/** Vectors of the chunks of a version that is replaced, by the text that they were embedded from. */
export type ReusableVectors = ReadonlyMap<string, ReusableChunk>;

interface ReusableChunk {
  readonly vectors: readonly { readonly model: number; readonly value: Buffer }[];
  readonly sentences: { readonly model: number; readonly vectors: Buffer } | undefined;
}

/** Carries vectors over to unchanged chunks of the next version. Each method runs inside a transaction of the caller. */
export interface VectorReuse {
  /** Collects the vectors of the current chunks, except those of an older title. */
  collect(resource: Pick<ResourceRow, "first_row" | "chunks">): ReusableVectors;
  /** Copies them to equal chunks of the next version that have no vectors yet. */
  apply(
    reusable: ReusableVectors,
    scope: number,
    firstRow: number,
    parts: readonly Part[],
    spans: readonly Span[],
  ): void;
  /**
   * Marks the chunks' vectors as stale after a change of the title, including vectors that are being made. `revision` of the
   * row is the one before the change.
   */
  markStale(resource: Pick<ResourceRow, "first_row" | "chunks" | "revision" | "tier">): void;
}

/** Prepares the statements on the writing connection. */
export function prepareVectorReuse(db: Connection, vectors: VectorWrites): VectorReuse {
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

  return {
    collect({ first_row: first, chunks }) {
      const reusable = new Map<string, ReusableChunk>();
      for (const { row, headings, text } of selectChunks.all(first, first + chunks - 1)) {
        const of = selectVectors.all(row);
        if (of.length > 0)
          reusable.set(vectorKey(headings, text), { vectors: of, sentences: selectSentences.get(row) });
      }
      return reusable;
    },
    apply(reusable, scope, firstRow, parts, spans) {
      if (reusable.size === 0) return;
      for (const [at, { text }] of parts.entries()) {
        const found = reusable.get(vectorKey(joinHeadings(spans[at] ?? { headings: [] }), text));
        if (found === undefined) continue;
        const row = firstRow + at;
        for (const { model, value } of found.vectors) insertVector.run(row, model, value);
        if (found.sentences !== undefined)
          insertSentences.run(row, found.sentences.model, found.sentences.vectors);
      }
      vectors.noteRange(scope, firstRow, firstRow + parts.length - 1);
    },
    markStale({ first_row: first, chunks, revision, tier }) {
      // Chunks of this tier have no vectors.
      if (tier === "fastest") return;
      insertStale.run(revision + 1, first, first + chunks - 1);
    },
  };
}

import type { Tier } from "../../../../wire/primitives.ts";
import type { EmbeddedChunk, ModelScope } from "../../models.ts";
import type { ResourceKey, RowContext } from "../../records.ts";
import type { Connection } from "../database/connection.ts";
import { readChunk } from "../database/parts.ts";
import { rowsOfScope, scopeOfRow } from "../../../index/rows.ts";

/** An owner's part of a collection as it was when all its chunks had a vector of a model. */
export interface CompleteScope {
  readonly scope: number;
  /** Tells whether something was chunked there since. */
  readonly nextSequence: number;
}

/** Chunks looked at in one go: a millisecond or two. */
const WINDOW_CHUNKS = 1024;

/** One step of a walk over all chunks of some tiers; the next one begins behind `lookedTo`, undefined: there is none. */
interface Step {
  readonly lookedTo: number | undefined;
}

/** Reads about models and what they lack, over one connection. */
export interface ServingReads {
  readonly servingFingerprint: (place: ModelScope) => string | undefined;
  readonly servingFingerprints: () => string[];
  /** The scope behind a row that has all vectors, if this step came to its end and found none lacking. */
  readonly completeScope: (argument: {
    fingerprint: string;
    tiers: readonly Tier[];
    exceptRows: readonly number[];
    afterRow: number;
  }) => Step & { readonly scope: CompleteScope | undefined };
  /** What lacks a vector among the next chunks behind a row. */
  readonly lackingVector: (argument: {
    fingerprint: string;
    tiers: readonly Tier[];
    limit: number;
    afterRow: number;
  }) => Step & { readonly chunks: readonly RowContext[] };
  readonly embeddedChunks: (argument: ResourceKey & { fingerprint: string }) => EmbeddedChunk[];
}

/** Prepares the statements on a connection of either kind. */
export function prepareServingReads(db: Connection): ServingReads {
  const selectModel = db
    .prepare<[string], number>("SELECT number FROM embedding_model WHERE fingerprint = ?")
    .pluck();
  const serving = (where: string) =>
    db
      .prepare<[string, string, string], string>(`
      SELECT fingerprint FROM scope JOIN embedding_model ON embedding_model.number = serving_model ${where}`)
      .pluck();
  const ofCollection = serving(`
    WHERE collection_id = (SELECT id FROM collection WHERE id = ? AND account_id = ?) AND owner_id = ?`);
  const ofTier = serving(`
    WHERE collection_id = (SELECT id FROM collection WHERE account_id = ? AND tier = ?) AND owner_id = ?`);
  const ofResource = db
    .prepare<[string, string], string>(`
    SELECT fingerprint FROM resource JOIN scope ON scope.number = resource.scope
      JOIN embedding_model ON embedding_model.number = serving_model
    WHERE resource.id = ? AND resource.account_id = ? AND is_deleted = 0`)
    .pluck();
  const selectAll = db
    .prepare<[], string>(`
    SELECT fingerprint FROM embedding_model WHERE number IN (SELECT serving_model FROM scope)`)
    .pluck();
  const selectScope = db.prepare<
    [number, string],
    { scope: number; nextSequence: number; serving: number | null }
  >(`
    SELECT scope.number AS scope, next_sequence AS nextSequence, serving_model AS serving
    FROM scope JOIN collection ON collection.id = scope.collection_id
    WHERE scope.number >= ? AND tier IN (SELECT value FROM json_each(?)) ORDER BY scope.number LIMIT 1`);
  const selectWindowEnd = db
    .prepare<[number, number], number>(
      `SELECT row FROM chunk WHERE row BETWEEN ? AND ? ORDER BY row LIMIT 1 OFFSET ${WINDOW_CHUNKS - 1}`,
    )
    .pluck();
  // Without a vector of the model, or with one of an older title; the row alone, for most chunks are in order.
  const selectLacking = db.prepare<
    { first: number; last: number; model: number },
    { row: number; hasVector: number }
  >(`
    SELECT row, EXISTS (SELECT 1 FROM vector WHERE vector.row = chunk.row AND vector.model = @model) AS hasVector
    FROM chunk WHERE row BETWEEN @first AND @last
      AND (hasVector = 0 OR EXISTS (SELECT 1 FROM stale_vector WHERE stale_vector.row = chunk.row))
    ORDER BY row`);
  const selectContext = db.prepare<
    [number],
    { text: string; title: string; headings: string; staleSince: number | null }
  >(`
    SELECT text, title, headings, stale_vector.revision AS staleSince
    FROM chunk JOIN resource ON resource.number = chunk.resource
      LEFT JOIN stale_vector ON stale_vector.row = chunk.row
    WHERE chunk.row = ?`);
  const selectEmbedded = db.prepare<[string, string, string], { headings: string; text: string }>(`
    SELECT headings, text FROM resource JOIN chunk ON chunk.row BETWEEN first_row AND first_row + resource.chunks - 1
    WHERE resource.id = ? AND account_id = ? AND is_deleted = 0
      AND EXISTS (SELECT 1 FROM vector JOIN embedding_model ON embedding_model.number = vector.model
        WHERE vector.row = chunk.row AND fingerprint = ?)
      AND NOT EXISTS (SELECT 1 FROM stale_vector WHERE stale_vector.row = chunk.row)
    ORDER BY chunk.row`);
  /** No model has this number: everything lacks its vectors. */
  const UNKNOWN = -1;

  const contextsOf = (rows: readonly number[]): RowContext[] =>
    rows.flatMap((row) => {
      const found = selectContext.get(row);
      if (found === undefined) return [];
      const { title, staleSince } = found;
      const { headings, text } = readChunk(found.headings, found.text);
      return staleSince === null
        ? { row, text, title, headings }
        : { row, text, title, headings, staleSince };
    });
  /** The next chunks behind a row: those of one scope, as many as are looked at in one go; `end` is its last row at its end. */
  const nextWindow = (tiers: readonly Tier[], afterRow: number) => {
    const found = selectScope.get(scopeOfRow(afterRow + 1), JSON.stringify(tiers));
    if (found === undefined) return undefined;
    const { first, last } = rowsOfScope(found.scope);
    const from = Math.max(first, afterRow + 1);
    return { ...found, from, last, end: selectWindowEnd.get(from, last) ?? last };
  };

  return {
    servingFingerprint(place) {
      if ("resourceId" in place) return ofResource.get(place.resourceId, place.accountId);
      return "collectionId" in place
        ? ofCollection.get(place.collectionId, place.accountId, place.ownerId)
        : ofTier.get(place.accountId, place.tier, place.ownerId);
    },
    servingFingerprints: () => selectAll.all(),
    completeScope({ fingerprint, tiers, exceptRows, afterRow }) {
      const model = selectModel.get(fingerprint) ?? UNKNOWN;
      const window = nextWindow(tiers, afterRow);
      if (window === undefined) return { scope: undefined, lookedTo: undefined };
      const { scope, nextSequence, serving: present, from, end, last } = window;
      const lacking = selectLacking
        .all({ first: from, last: end, model })
        .filter(({ hasVector }) => hasVector === 0);
      const excepted = lacking.length === 0 ? undefined : new Set(exceptRows);
      const isOut =
        present === null || present === model || lacking.some(({ row }) => excepted?.has(row) === false);
      if (isOut) return { scope: undefined, lookedTo: last };
      // What is chunked meanwhile gets rows behind all others: the last step sees them, or `nextSequence` tells.
      return { scope: end === last ? { scope, nextSequence } : undefined, lookedTo: end };
    },
    lackingVector({ fingerprint, tiers, limit, afterRow }) {
      const model = selectModel.get(fingerprint) ?? UNKNOWN;
      const window = nextWindow(tiers, afterRow);
      if (window === undefined) return { chunks: [], lookedTo: undefined };
      const rows = selectLacking.all({ first: window.from, last: window.end, model }).slice(0, limit);
      const chunks = contextsOf(rows.map(({ row }) => row));
      return { chunks, lookedTo: rows.length === limit ? undefined : window.end };
    },
    embeddedChunks: ({ id, accountId, fingerprint }) =>
      selectEmbedded
        .all(id, accountId, fingerprint)
        .map((row) => readChunk(row.headings, row.text))
        .map(({ headings, text }) => ({ headings, text })),
  };
}

/** Writes about models; each runs inside a transaction of the caller. */
export type ServingWrites = {
  /** Lets a model serve; a scope where something was chunked since is left out. Answers how many changed over. */
  serve(argument: { fingerprint: string; scopes: readonly CompleteScope[] }): number;
  dropRetired(argument: { fingerprint: string; limit: number }): number;
};

/** Prepares the statements on the writing connection. */
export function prepareServingWrites(db: Connection): ServingWrites {
  const change = db.prepare(`
    UPDATE scope SET serving_model = (SELECT number FROM embedding_model WHERE fingerprint = ?)
    WHERE number = ? AND next_sequence = ?`);
  const selectRetired = db
    .prepare<[string], number>(`
    SELECT number FROM embedding_model WHERE fingerprint <> ?
      AND number NOT IN (SELECT serving_model FROM scope WHERE serving_model IS NOT NULL)`)
    .pluck();
  const dropVectors = db.prepare(
    "DELETE FROM vector WHERE number IN (SELECT number FROM vector WHERE model = ? LIMIT ?)",
  );
  const dropSentences = db.prepare(
    "DELETE FROM sentence_vectors WHERE row IN (SELECT row FROM sentence_vectors WHERE model = ? LIMIT ?)",
  );
  const dropModel = db.prepare("DELETE FROM embedding_model WHERE number = ?");

  return {
    serve: ({ fingerprint, scopes }) =>
      scopes.reduce(
        (sum, { scope, nextSequence }) => sum + change.run(fingerprint, scope, nextSequence).changes,
        0,
      ),
    dropRetired({ fingerprint, limit }) {
      let dropped = 0;
      for (const model of selectRetired.all(fingerprint)) {
        dropped += dropVectors.run(model, limit - dropped).changes;
        if (dropped < limit) dropped += dropSentences.run(model, limit - dropped).changes;
        if (dropped >= limit) return dropped;
        // Nothing of it is left, or the limit would have been reached.
        dropModel.run(model);
      }
      return dropped;
    },
  };
}

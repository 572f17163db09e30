import type { Tier } from "../../../wire/primitives.ts";
import type { EmbeddedChunk, ModelPlace } from "../models.ts";
import type { ResourceKey, RowContext } from "../store.ts";
import type { Connection } from "./connection.ts";
import { splitHeadings } from "./parts.ts";
import { rowsOfScope } from "./rows.ts";

/** An owner's part of a collection as it was when all its chunks had a vector of a model. */
export interface CompleteScope {
  readonly scope: number;
  /** Tells whether something was chunked there since. */
  readonly nextSequence: number;
}

/** Reads about models and what they lack, over one connection. */
export interface ServingReads {
  readonly servingFingerprint: (place: ModelPlace) => string | undefined;
  readonly servingFingerprints: () => string[];
  readonly completeScopes: (argument: {
    fingerprint: string;
    tiers: readonly Tier[];
    exceptRows: readonly number[];
  }) => CompleteScope[];
  readonly chunksWithoutVector: (argument: {
    fingerprint: string;
    tiers: readonly Tier[];
    limit: number;
    afterRow: number;
  }) => RowContext[];
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
  const selectScopes = db.prepare<[string], { scope: number; nextSequence: number; serving: number | null }>(`
    SELECT scope.number AS scope, next_sequence AS nextSequence, serving_model AS serving
    FROM scope JOIN collection ON collection.id = scope.collection_id
    WHERE tier IN (SELECT value FROM json_each(?)) ORDER BY scope.number`);
  // Without a vector of the model, or with one of an older title; the row alone, for most chunks are in order.
  const selectLacking = db.prepare<[number, number, number], { row: number; isStale: number }>(`
    SELECT row, EXISTS (SELECT 1 FROM stale_vector WHERE stale_vector.row = chunk.row) AS isStale FROM chunk
    WHERE row BETWEEN ? AND ? AND (
      NOT EXISTS (SELECT 1 FROM vector WHERE vector.row = chunk.row AND vector.model = ?)
      OR EXISTS (SELECT 1 FROM stale_vector WHERE stale_vector.row = chunk.row))
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

  return {
    servingFingerprint(place) {
      if ("resourceId" in place) return ofResource.get(place.resourceId, place.accountId);
      return "collectionId" in place
        ? ofCollection.get(place.collectionId, place.accountId, place.ownerId)
        : ofTier.get(place.accountId, place.tier, place.ownerId);
    },
    servingFingerprints: () => selectAll.all(),
    completeScopes({ fingerprint, tiers, exceptRows }) {
      const model = selectModel.get(fingerprint) ?? UNKNOWN;
      const excepted = new Set(exceptRows);
      return selectScopes.all(JSON.stringify(tiers)).flatMap(({ scope, nextSequence, serving: present }) => {
        if (present === null || present === model) return [];
        const { first, last } = rowsOfScope(scope);
        for (const { row, isStale } of selectLacking.iterate(first, last, model))
          if (isStale === 0 && !excepted.has(row)) return [];
        return { scope, nextSequence };
      });
    },
    chunksWithoutVector({ fingerprint, tiers, limit, afterRow }) {
      const model = selectModel.get(fingerprint) ?? UNKNOWN;
      const rows: number[] = [];
      for (const { scope } of selectScopes.all(JSON.stringify(tiers))) {
        const { first, last } = rowsOfScope(scope);
        if (last <= afterRow) continue;
        for (const { row } of selectLacking.iterate(Math.max(first, afterRow + 1), last, model)) {
          rows.push(row);
          if (rows.length === limit) break;
        }
        if (rows.length === limit) break;
      }
      return rows.flatMap((row) => {
        const found = selectContext.get(row);
        if (found === undefined) return [];
        const { text, title, staleSince } = found;
        const headings = splitHeadings(found.headings);
        return staleSince === null
          ? { row, text, title, headings }
          : { row, text, title, headings, staleSince };
      });
    },
    embeddedChunks: ({ id, accountId, fingerprint }) =>
      selectEmbedded
        .all(id, accountId, fingerprint)
        .map(({ headings, text }) => ({ headings: splitHeadings(headings), text })),
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

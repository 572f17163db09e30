import type { Tier } from "../../../../wire/primitives.ts";
import type { Inside } from "../../methods.ts";
import { EXAMINED_CHUNKS, type LackingDocument } from "../../search-index.ts";
import type { Connection } from "../database/connection.ts";
import { contextOf, type LackingRow } from "../../rows/chunks.ts";
import { rowOf, rowsOfScope, scopeOfRow } from "../../../index/rows.ts";
import type { CodeWrites } from "./code-writes.ts";

/** The state of a scope when all its chunks had a vector of a model. */
export interface CompleteScope {
  readonly scope: number;
  /** Changes when a chunk is added. */
  readonly nextSequence: number;
}

/** Reads of serving models and missing vectors. */
export type ServingReads = Pick<
  Inside<"read" | "lookup">["index"],
  "servingFingerprint" | "servingFingerprints" | "embeddingScopes" | "documentsLacking" | "chunksLacking"
> & {
  /**
   * Checks the next chunks after a row. Returns their scope if the step reaches its end without finding a missing vector. The next
   * step starts after `checkedTo`; undefined: all chunks are checked.
   */
  readonly completeScope: (argument: {
    fingerprint: string;
    tiers: readonly Tier[];
    exceptRows: readonly number[];
    afterRow: number;
  }) => { readonly checkedTo: number | undefined; readonly scope: CompleteScope | undefined };
};

/** Prepares the statements on a connection of either kind. */
export function prepareServingReads(db: Connection): ServingReads {
  const serving = (where: string) =>
    db
      .prepare<[string, string, string], string>(`
      SELECT fingerprint FROM scope JOIN embedding_model ON embedding_model.number = serving_model ${where}`)
      .pluck();
  const ofCollection = serving(`
    WHERE collection_id = (SELECT id FROM collection WHERE id = ? AND account_id = ?) AND owner_id = ?`);
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

  return {
    servingFingerprint(scope) {
      if ("resourceId" in scope) return ofResource.get(scope.resourceId, scope.accountId);
      return ofCollection.get(scope.collectionId, scope.accountId, scope.ownerId);
    },
    servingFingerprints: () => selectAll.all(),
    ...prepareCompleteness(db),
    ...prepareLacking(db),
  };
}

/** No model has this number, so all its vectors are missing. */
const UNKNOWN = -1;

function prepareModelNumber(db: Connection): (fingerprint: string) => number {
  const select = db
    .prepare<[string], number>("SELECT number FROM embedding_model WHERE fingerprint = ?")
    .pluck();
  return (fingerprint) => select.get(fingerprint) ?? UNKNOWN;
}

function prepareCompleteness(db: Connection): Pick<ServingReads, "completeScope"> {
  const modelOf = prepareModelNumber(db);
  const selectScope = db.prepare<[number, number, string], { scope: number; nextSequence: number }>(`
    SELECT scope.number AS scope, next_sequence AS nextSequence
    FROM scope JOIN collection ON collection.id = scope.collection_id
    WHERE scope.number >= ? AND serving_model <> ? AND tier IN (SELECT value FROM json_each(?)) ORDER BY scope.number LIMIT 1`);
  const selectEnd = db
    .prepare<[number, number], number>(
      `SELECT row FROM chunk WHERE row BETWEEN ? AND ? ORDER BY row LIMIT 1 OFFSET ${EXAMINED_CHUNKS - 1}`,
    )
    .pluck();
  const selectLacking = db
    .prepare<{ first: number; last: number; model: number }, number>(`
    SELECT row FROM chunk WHERE row BETWEEN @first AND @last
      AND NOT EXISTS (SELECT 1 FROM vector WHERE vector.row = chunk.row AND vector.model = @model)`)
    .pluck();

  return {
    completeScope({ fingerprint, tiers, exceptRows, afterRow }) {
      const model = modelOf(fingerprint);
      const found = selectScope.get(scopeOfRow(afterRow + 1), model, JSON.stringify(tiers));
      if (found === undefined) return { scope: undefined, checkedTo: undefined };
      const { scope, nextSequence } = found;
      const rows = rowsOfScope(scope);
      const first = Math.max(rows.first, afterRow + 1);
      const last = selectEnd.get(first, rows.last) ?? rows.last;
      const excepted = new Set(exceptRows);
      if (selectLacking.all({ first, last, model }).some((row) => !excepted.has(row)))
        return { scope: undefined, checkedTo: rows.last };
      // Chunks added during the scan get the highest rows: the last step finds them, or `nextSequence` has changed.
      return { scope: last === rows.last ? { scope, nextSequence } : undefined, checkedTo: last };
    },
  };
}

/** Conditions of a chunk that lacks vectors of `@model`. */
const LACKS = {
  vectors: `(NOT EXISTS (SELECT 1 FROM vector WHERE vector.row = chunk.row AND vector.model = @model)
      OR EXISTS (SELECT 1 FROM stale_vector WHERE stale_vector.row = chunk.row))`,
  sentences:
    "NOT EXISTS (SELECT 1 FROM sentence_vectors AS own WHERE own.row = chunk.row AND own.model = @model)",
};

function prepareLacking(
  db: Connection,
): Pick<ServingReads, "embeddingScopes" | "documentsLacking" | "chunksLacking"> {
  const modelOf = prepareModelNumber(db);
  const selectScopes = db.prepare<
    [string],
    { accountId: string; scope: number; nextSequence: number; changedAt: string | null }
  >(`
    SELECT account_id AS accountId, scope.number AS scope, next_sequence AS nextSequence,
      (SELECT max(updated_at) FROM resource WHERE resource.scope = scope.number AND is_deleted = 0) AS changedAt
    FROM scope JOIN collection ON collection.id = scope.collection_id
    WHERE chunks > 0 AND tier IN (SELECT value FROM json_each(?))`);
  const selectDownTo = db
    .prepare<[number, number], number>(
      `SELECT row FROM chunk WHERE row BETWEEN ? AND ? ORDER BY row DESC LIMIT 1 OFFSET ${EXAMINED_CHUNKS - 1}`,
    )
    .pluck();
  const eachLack = <T>(prepare: (condition: string) => T) => ({
    vectors: prepare(LACKS.vectors),
    sentences: prepare(LACKS.sentences),
  });
  const selectDocuments = eachLack((condition) =>
    db.prepare<{ first: number; last: number; model: number }, LackingDocument>(`
    SELECT lacking.*, updated_at AS changedAt FROM (
      SELECT resource, min(row) AS first, max(row) AS last, count(*) AS chunks FROM chunk
      WHERE row BETWEEN @first AND @last AND ${condition} GROUP BY resource) AS lacking
    JOIN resource ON resource.number = lacking.resource ORDER BY last DESC`),
  );
  const selectChunks = eachLack((condition) =>
    db.prepare<{ first: number; last: number; model: number; limit: number }, LackingRow>(`
    SELECT chunk.row AS ref, text, title, headings, stale_vector.revision AS staleSince
    FROM chunk JOIN resource ON resource.number = chunk.resource
      LEFT JOIN stale_vector ON stale_vector.row = chunk.row
    WHERE chunk.row BETWEEN @first AND @last AND ${condition} ORDER BY chunk.row LIMIT @limit`),
  );

  return {
    embeddingScopes: (tiers) =>
      selectScopes.all(JSON.stringify(tiers)).map(({ accountId, scope, nextSequence, changedAt }) => ({
        accountId,
        first: rowsOfScope(scope).first,
        end: rowOf(scope, nextSequence),
        changedAt: changedAt ?? "",
      })),
    documentsLacking({ lacks, fingerprint, first, before }) {
      const downTo = selectDownTo.get(first, before - 1) ?? first;
      const rows = { first: downTo, last: before - 1, model: modelOf(fingerprint) };
      return { documents: selectDocuments[lacks].all(rows), downTo };
    },
    chunksLacking: ({ lacks, fingerprint, first, last, limit }) =>
      selectChunks[lacks].all({ first, last, model: modelOf(fingerprint), limit }).map(contextOf),
  };
}

/** Writes of serving models. Each runs inside a transaction of the caller. */
export type ServingWrites = Pick<Inside<"write" | "free">["index"], "dropRetired"> & {
  /** Switches scopes to a model, except scopes where a chunk was added since. Returns the number of scopes switched. */
  serve(argument: { fingerprint: string; scopes: readonly CompleteScope[] }): number;
};

/** Prepares the statements on the writing connection. */
export function prepareServingWrites(db: Connection, codes: Pick<CodeWrites, "drop">): ServingWrites {
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
    dropRetired(fingerprint, limit) {
      let dropped = 0;
      for (const model of selectRetired.all(fingerprint)) {
        codes.drop(model);
        dropped += dropVectors.run(model, limit - dropped).changes;
        if (dropped < limit) dropped += dropSentences.run(model, limit - dropped).changes;
        if (dropped >= limit) return dropped;
        // The limit is not reached, so all its vectors are removed.
        dropModel.run(model);
      }
      return dropped;
    },
  };
}

import type { Tier } from "../../../../wire/primitives.ts";
import type { Inside } from "../../methods.ts";
import type { ChunkContext } from "../../search-index.ts";
import type { Connection } from "../database/connection.ts";
import { readChunk } from "../../rows/parts.ts";
import { rowsOfScope, scopeOfRow } from "../../../index/rows.ts";
import type { CodeWrites } from "./code-writes.ts";

/** The state of a scope when all its chunks had a vector of a model. */
export interface CompleteScope {
  readonly scope: number;
  /** Changes when a chunk is added. */
  readonly nextSequence: number;
}

/** Chunks checked in one step: takes a millisecond or two. */
const WINDOW_CHUNKS = 1024;

/** One step of a scan of all chunks of some tiers. The next step starts after `checkedTo`; undefined: the scan is done. */
interface Step {
  readonly checkedTo: number | undefined;
}

/** Reads of serving models and missing vectors. */
export type ServingReads = Pick<
  Inside<"read" | "lookup">["index"],
  "servingFingerprint" | "servingFingerprints" | "embeddedChunks"
> & {
  /** Checks the next chunks after a row. Returns their scope if the step reaches its end without finding a missing vector. */
  readonly completeScope: (argument: {
    fingerprint: string;
    tiers: readonly Tier[];
    exceptRows: readonly number[];
    afterRow: number;
  }) => Step & { readonly scope: CompleteScope | undefined };
  /** Returns the chunks without a vector among the next chunks after a row. */
  readonly lackingVector: (argument: {
    fingerprint: string;
    tiers: readonly Tier[];
    limit: number;
    afterRow: number;
  }) => Step & { readonly chunks: readonly ChunkContext[] };
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
  const selectEmbedded = db.prepare<[string, string, string], { headings: string; text: string }>(`
    SELECT headings, text FROM resource JOIN chunk ON chunk.row BETWEEN first_row AND first_row + resource.chunks - 1
    WHERE resource.id = ? AND account_id = ? AND is_deleted = 0
      AND EXISTS (SELECT 1 FROM vector JOIN embedding_model ON embedding_model.number = vector.model
        WHERE vector.row = chunk.row AND fingerprint = ?)
      AND NOT EXISTS (SELECT 1 FROM stale_vector WHERE stale_vector.row = chunk.row)
    ORDER BY chunk.row`);

  return {
    servingFingerprint(scope) {
      if ("resourceId" in scope) return ofResource.get(scope.resourceId, scope.accountId);
      return "collectionId" in scope
        ? ofCollection.get(scope.collectionId, scope.accountId, scope.ownerId)
        : ofTier.get(scope.accountId, scope.tier, scope.ownerId);
    },
    servingFingerprints: () => selectAll.all(),
    ...prepareVectorScans(db),
    embeddedChunks: ({ id, accountId }, fingerprint) =>
      selectEmbedded
        .all(id, accountId, fingerprint)
        .map((row) => readChunk(row.headings, row.text))
        .map(({ headings, text }) => ({ headings, text })),
  };
}

function prepareVectorScans(db: Connection): Pick<ServingReads, "completeScope" | "lackingVector"> {
  const selectModel = db
    .prepare<[string], number>("SELECT number FROM embedding_model WHERE fingerprint = ?")
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
  // Chunks without a vector of the model, or with a stale one. Selects only the row, because most chunks have their vector.
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
    { accountId: string; text: string; title: string; headings: string; staleSince: number | null }
  >(`
    SELECT account_id AS accountId, text, title, headings, stale_vector.revision AS staleSince
    FROM chunk JOIN resource ON resource.number = chunk.resource
      LEFT JOIN stale_vector ON stale_vector.row = chunk.row
    WHERE chunk.row = ?`);
  /** No model has this number, so all its vectors are missing. */
  const UNKNOWN = -1;

  const contextsOf = (rows: readonly number[]): ChunkContext[] =>
    rows.flatMap((row) => {
      const found = selectContext.get(row);
      if (found === undefined) return [];
      const { accountId, title, staleSince } = found;
      const { headings, text } = readChunk(found.headings, found.text);
      return { ref: row, accountId, text, title, headings, ...(staleSince !== null && { staleSince }) };
    });
  /** Finds the next window of chunks after a row, within one scope. At the end of the scope, `end` is its last row. */
  const nextWindow = (tiers: readonly Tier[], afterRow: number) => {
    const found = selectScope.get(scopeOfRow(afterRow + 1), JSON.stringify(tiers));
    if (found === undefined) return undefined;
    const { first, last } = rowsOfScope(found.scope);
    const from = Math.max(first, afterRow + 1);
    return { ...found, from, last, end: selectWindowEnd.get(from, last) ?? last };
  };

  return {
    completeScope({ fingerprint, tiers, exceptRows, afterRow }) {
      const model = selectModel.get(fingerprint) ?? UNKNOWN;
      const window = nextWindow(tiers, afterRow);
      if (window === undefined) return { scope: undefined, checkedTo: undefined };
      const { scope, nextSequence, serving: current, from, end, last } = window;
      const lacking = selectLacking
        .all({ first: from, last: end, model })
        .filter(({ hasVector }) => hasVector === 0);
      const excepted = lacking.length === 0 ? undefined : new Set(exceptRows);
      const isExcluded =
        current === null || current === model || lacking.some(({ row }) => excepted?.has(row) === false);
      if (isExcluded) return { scope: undefined, checkedTo: last };
      // Chunks added during the scan get the highest rows: the last step finds them, or `nextSequence` has changed.
      return { scope: end === last ? { scope, nextSequence } : undefined, checkedTo: end };
    },
    lackingVector({ fingerprint, tiers, limit, afterRow }) {
      const model = selectModel.get(fingerprint) ?? UNKNOWN;
      const window = nextWindow(tiers, afterRow);
      if (window === undefined) return { chunks: [], checkedTo: undefined };
      const rows = selectLacking.all({ first: window.from, last: window.end, model }).slice(0, limit);
      const chunks = contextsOf(rows.map(({ row }) => row));
      return { chunks, checkedTo: rows.length === limit ? undefined : window.end };
    },
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

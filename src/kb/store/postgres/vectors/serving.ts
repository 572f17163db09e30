import type { Tier } from "../../../../wire/primitives.ts";
import { rowOf, rowsOfScope } from "../../../index/rows.ts";
import { contextOf, type LackingRow } from "../../rows/chunks.ts";
import { EXAMINED_CHUNKS, type Index, type LackingDocument } from "../../search-index.ts";
import type { Transaction } from "../database/connections.ts";
import { findModel } from "./nearest.ts";

/** No model has this number, so all its vectors are missing. */
const UNKNOWN = -1;

const OF_COLLECTION = "JOIN collection ON collection.id = collection_id";
const HAS_VECTOR = `EXISTS (SELECT 1 FROM chunk_vector WHERE chunk_vector.account_id = chunk.account_id AND chunk_vector.row = chunk.row
  AND chunk_vector.model = @model)`;
/** Conditions of a chunk that lacks vectors of `@model`. */
const LACKS = {
  vectors: `(NOT ${HAS_VECTOR}
    OR EXISTS (SELECT 1 FROM stale_vector AS stale WHERE stale.account_id = chunk.account_id AND stale.row = chunk.row))`,
  sentences: `NOT EXISTS (SELECT 1 FROM sentence_vectors AS own
    WHERE own.account_id = chunk.account_id AND own.row = chunk.row AND own.model = @model)`,
};

type Serving = Pick<
  Index,
  | "servingFingerprint"
  | "servingFingerprints"
  | "embeddingScopes"
  | "documentsLacking"
  | "chunksLacking"
  | "serveComplete"
  | "dropRetired"
>;

/** Serving models, and the vectors that are missing. */
export function servingOn(tx: Transaction): Serving {
  return {
    servingFingerprint: async (scope) => {
      const where =
        "resourceId" in scope
          ? `scope.number = (SELECT resource.scope FROM resource
              WHERE resource.account_id = @accountId AND resource.id = @resourceId AND NOT is_deleted)`
          : "collection.id = @collectionId AND collection.account_id = @accountId AND owner_id = @ownerId";
      const { filter: _, ...parameters } = { filter: undefined, ...scope };
      const found = await tx.get<{ readonly fingerprint: string }>(
        `SELECT fingerprint FROM scope ${OF_COLLECTION} JOIN embedding_model ON embedding_model.number = serving_model
        WHERE ${where}`,
        parameters,
      );
      return found?.fingerprint;
    },
    servingFingerprints: async () => {
      const rows = await tx.all<{ readonly fingerprint: string }>(
        "SELECT fingerprint FROM embedding_model WHERE number IN (SELECT serving_model FROM scope) ORDER BY number",
      );
      return rows.map(({ fingerprint }) => fingerprint);
    },
    embeddingScopes: async (tiers) => {
      const scopes = await tx.all<{
        readonly accountId: string;
        readonly scope: number;
        readonly nextSequence: number;
        readonly changedAt: string | null;
      }>(
        `SELECT collection.account_id AS "accountId", scope.number AS scope, next_sequence AS "nextSequence",
          (SELECT max(updated_at) FROM resource WHERE resource.account_id = collection.account_id
            AND resource.scope = scope.number AND NOT is_deleted) AS "changedAt"
        FROM scope ${OF_COLLECTION} WHERE chunks > 0 AND tier = ANY (@tiers::text[])`,
        { tiers },
      );
      return scopes.map(({ accountId, scope, nextSequence, changedAt }) => ({
        accountId,
        first: rowsOfScope(scope).first,
        end: rowOf(scope, nextSequence),
        changedAt: changedAt ?? "",
      }));
    },
    documentsLacking: async ({ accountId, lacks, fingerprint, first, before }) => {
      const model = (await findModel(tx, fingerprint)) ?? UNKNOWN;
      const rows = { accountId, first, last: before - 1 };
      const found = await tx.get<{ readonly row: number }>(
        `SELECT row FROM chunk WHERE account_id = @accountId AND row BETWEEN @first AND @last
        ORDER BY row DESC LIMIT 1 OFFSET ${EXAMINED_CHUNKS - 1}`,
        rows,
      );
      const downTo = found?.row ?? first;
      const documents = await tx.all<LackingDocument>(
        `SELECT first, last, lacking.chunks, updated_at AS "changedAt" FROM (
          SELECT resource, min(row) AS first, max(row) AS last, count(*) AS chunks FROM chunk
          WHERE account_id = @accountId AND row BETWEEN @first AND @last AND ${LACKS[lacks]} GROUP BY resource) AS lacking
        JOIN resource ON resource.account_id = @accountId AND resource.number = lacking.resource ORDER BY last DESC`,
        { ...rows, first: downTo, model },
      );
      return { documents, downTo };
    },
    chunksLacking: async ({ accountId, lacks, fingerprint, first, last, limit }) => {
      const model = (await findModel(tx, fingerprint)) ?? UNKNOWN;
      const chunks = await tx.all<LackingRow>(
        `SELECT chunk.row AS ref, chunk.text, title, headings, stale_vector.revision AS "staleSince"
        FROM chunk JOIN resource ON resource.account_id = chunk.account_id AND resource.number = chunk.resource
          LEFT JOIN stale_vector ON stale_vector.account_id = chunk.account_id AND stale_vector.row = chunk.row
        WHERE chunk.account_id = @accountId AND chunk.row BETWEEN @first AND @last AND ${LACKS[lacks]}
        ORDER BY chunk.row LIMIT @limit`,
        { accountId, first, last, model, limit },
      );
      return chunks.map(contextOf);
    },
    serveComplete: (fingerprint, tiers, except) => serveComplete(tx, fingerprint, tiers, except),
    dropRetired: (fingerprint, limit) => dropRetired(tx, fingerprint, limit),
  };
}

async function serveComplete(
  tx: Transaction,
  fingerprint: string,
  tiers: readonly Tier[],
  except: readonly number[],
): Promise<number> {
  const model = await findModel(tx, fingerprint);
  const scopes = await tx.all<{
    readonly number: number;
    readonly accountId: string;
    readonly nextSequence: number;
  }>(
    `SELECT scope.number, collection.account_id AS "accountId", next_sequence AS "nextSequence" FROM scope ${OF_COLLECTION}
    WHERE serving_model <> @model AND tier = ANY (@tiers::text[]) ORDER BY scope.number`,
    { model: model ?? UNKNOWN, tiers },
  );
  let served = 0;
  for (const { number, accountId, nextSequence } of scopes) {
    const { first, last } = rowsOfScope(number);
    const lacking = await tx.get(
      `SELECT 1 FROM chunk WHERE account_id = @accountId AND row BETWEEN @first AND @last AND NOT ${HAS_VECTOR}
        AND row <> ALL (@except::bigint[]) LIMIT 1`,
      { accountId, first, last, model: model ?? UNKNOWN, except },
    );
    if (lacking !== undefined) continue;
    // Not if a chunk was added meanwhile.
    served += await tx.run(
      "UPDATE scope SET serving_model = @model WHERE number = @number AND next_sequence = @nextSequence",
      { model: model ?? null, number, nextSequence },
    );
  }
  return served;
}

async function dropRetired(tx: Transaction, fingerprint: string, limit: number): Promise<number> {
  const retired = await tx.all<{ readonly number: number }>(
    `SELECT number FROM embedding_model WHERE fingerprint <> @fingerprint
      AND number NOT IN (SELECT serving_model FROM scope WHERE serving_model IS NOT NULL) ORDER BY number`,
    { fingerprint },
  );
  let dropped = 0;
  for (const { number: model } of retired) {
    dropped += await tx.run(
      `DELETE FROM chunk_vector WHERE (account_id, row, model) IN (SELECT account_id, row, model FROM chunk_vector WHERE model = @model LIMIT @limit)`,
      { model, limit: limit - dropped },
    );
    if (dropped < limit) {
      dropped += await tx.run(
        `DELETE FROM sentence_vectors WHERE (account_id, row) IN (
          SELECT account_id, row FROM sentence_vectors WHERE model = @model LIMIT @limit)`,
        { model, limit: limit - dropped },
      );
    }
    if (dropped >= limit) return dropped;
    // The limit is not reached, so all its vectors are removed.
    await tx.run("DELETE FROM embedding_model WHERE number = @model", { model });
  }
  return dropped;
}

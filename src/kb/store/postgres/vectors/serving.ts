import type { Tier } from "../../../../wire/primitives.ts";
import { rowsOfScope, scopeOfRow } from "../../../index/rows.ts";
import { readChunk } from "../../rows/parts.ts";
import type { ChunkContext, ChunkText, Index } from "../../search-index.ts";
import type { Transaction } from "../database/connections.ts";
import { findModel } from "./nearest.ts";

/** Scopes that one statement looks through for chunks without a vector. */
const SCOPES_AT_ONCE = 64;
/** No model has this number, so all its vectors are missing. */
const UNKNOWN = -1;

const OF_COLLECTION = "JOIN collection ON collection.id = collection_id";
const HAS_VECTOR = `EXISTS (SELECT 1 FROM chunk_vector WHERE chunk_vector.account_id = chunk.account_id AND chunk_vector.row = chunk.row
  AND chunk_vector.model = @model)`;
const IS_STALE = `EXISTS (SELECT 1 FROM stale_vector AS stale WHERE stale.account_id = chunk.account_id AND stale.row = chunk.row)`;

type Serving = Pick<
  Index,
  | "servingFingerprint"
  | "servingFingerprints"
  | "embeddedChunks"
  | "chunksWithoutVector"
  | "chunksWithoutSentences"
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
          : "collectionId" in scope
            ? "collection.id = @collectionId AND collection.account_id = @accountId AND owner_id = @ownerId"
            : "collection.account_id = @accountId AND tier = @tier AND owner_id = @ownerId";
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
    embeddedChunks: async ({ id, accountId }, fingerprint) => {
      const model = (await findModel(tx, fingerprint)) ?? UNKNOWN;
      const rows = await tx.all<{ readonly headings: string; readonly text: string }>(
        `SELECT headings, text FROM resource JOIN chunk ON chunk.account_id = resource.account_id
          AND chunk.row BETWEEN first_row AND first_row + resource.chunks - 1
        WHERE resource.account_id = @accountId AND resource.id = @id AND NOT is_deleted AND ${HAS_VECTOR} AND NOT ${IS_STALE}
        ORDER BY chunk.row`,
        { accountId, id, model },
      );
      return rows.map((row) => {
        const { headings, text } = readChunk(row.headings, row.text);
        return { headings, text };
      });
    },
    chunksWithoutVector: async (fingerprint, tiers, limit, after = -1) => {
      const model = (await findModel(tx, fingerprint)) ?? UNKNOWN;
      const condition = `NOT ${HAS_VECTOR} OR ${IS_STALE}`;
      const rows = await findChunks(tx, condition, tiers, { model, limit, after });
      return readContexts(tx, rows);
    },
    chunksWithoutSentences: async (fingerprint, limit, after = -1) => {
      const model = (await findModel(tx, fingerprint)) ?? UNKNOWN;
      const condition = `NOT EXISTS (SELECT 1 FROM sentence_vectors AS sentences
        WHERE sentences.account_id = chunk.account_id AND sentences.row = chunk.row AND sentences.model = @model)`;
      const rows = await findChunks(tx, condition, ["high_accuracy"], { model, limit, after });
      return readTexts(tx, rows);
    },
    serveComplete: (fingerprint, tiers, except) => serveComplete(tx, fingerprint, tiers, except),
    dropRetired: (fingerprint, limit) => dropRetired(tx, fingerprint, limit),
  };
}

/** A chunk that was found, with its account. */
interface FoundRow {
  readonly accountId: string;
  readonly row: number;
}

/** Finds chunks of collections of these tiers in the order of their rows, by a condition that may use `@model`. */
async function findChunks(
  tx: Transaction,
  condition: string,
  tiers: readonly Tier[],
  { model, limit, after }: { readonly model: number; readonly limit: number; readonly after: number },
): Promise<FoundRow[]> {
  const found: FoundRow[] = [];
  for (let from = scopeOfRow(after + 1); found.length < limit;) {
    const scopes = await tx.all<{ readonly number: number; readonly accountId: string }>(
      `SELECT scope.number, collection.account_id AS "accountId" FROM scope ${OF_COLLECTION}
      WHERE scope.number >= @from AND chunks > 0 AND tier = ANY (@tiers::text[])
      ORDER BY scope.number LIMIT ${SCOPES_AT_ONCE}`,
      { from, tiers },
    );
    if (scopes.length === 0) break;
    const ranges = scopes.map(({ number }) => rowsOfScope(number));
    const rows = await tx.all<FoundRow>(
      `SELECT "accountId", row FROM unnest(@accounts::text[], @firsts::bigint[], @lasts::bigint[]) AS part ("accountId", first, last)
      CROSS JOIN LATERAL (
        SELECT row FROM chunk WHERE chunk.account_id = part."accountId" AND row BETWEEN part.first AND part.last AND (${condition})
        ORDER BY row LIMIT @limit) AS lacking
      ORDER BY row LIMIT @limit`,
      {
        model,
        accounts: scopes.map(({ accountId }) => accountId),
        firsts: ranges.map(({ first }) => Math.max(first, after + 1)),
        lasts: ranges.map(({ last }) => last),
        limit: limit - found.length,
      },
    );
    found.push(...rows);
    from = (scopes.at(-1)?.number ?? from) + 1;
  }
  return found;
}

const arraysOf = (rows: readonly FoundRow[]) => ({
  accounts: rows.map(({ accountId }) => accountId),
  rows: rows.map(({ row }) => row),
});

async function readContexts(tx: Transaction, rows: readonly FoundRow[]): Promise<ChunkContext[]> {
  if (rows.length === 0) return [];
  const found = await tx.all<{
    readonly ref: number;
    readonly accountId: string;
    readonly text: string;
    readonly title: string;
    readonly headings: string;
    readonly staleSince: number | null;
  }>(
    `SELECT chunk.row AS ref, chunk.account_id AS "accountId", chunk.text, title, headings, stale_vector.revision AS "staleSince"
    FROM unnest(@accounts::text[], @rows::bigint[]) AS wanted (account_id, row)
      JOIN chunk ON chunk.account_id = wanted.account_id AND chunk.row = wanted.row
      JOIN resource ON resource.account_id = chunk.account_id AND resource.number = chunk.resource
      LEFT JOIN stale_vector ON stale_vector.account_id = chunk.account_id AND stale_vector.row = chunk.row
    ORDER BY chunk.row`,
    arraysOf(rows),
  );
  return found.map(({ ref, accountId, title, staleSince, ...row }) => {
    const { headings, text } = readChunk(row.headings, row.text);
    const chunk = { ref, accountId, text, title, headings };
    return staleSince === null ? chunk : Object.assign(chunk, { staleSince });
  });
}

async function readTexts(tx: Transaction, rows: readonly FoundRow[]): Promise<ChunkText[]> {
  if (rows.length === 0) return [];
  return tx.all<ChunkText>(
    `SELECT chunk.row AS ref, chunk.account_id AS "accountId", chunk.text
    FROM unnest(@accounts::text[], @rows::bigint[]) AS wanted (account_id, row)
      JOIN chunk ON chunk.account_id = wanted.account_id AND chunk.row = wanted.row
    ORDER BY chunk.row`,
    arraysOf(rows),
  );
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

import { rowOf } from "../../../index/rows.ts";
import { UNFINISHED_CHUNKS_MAX, type Unfinished, type UnfinishedQuery } from "../../search-index.ts";
import type { Transaction } from "../database/connections.ts";
import type { Target } from "../scopes/target.ts";
import { findModel } from "../vectors/nearest.ts";

/** Scopes whose progress is remembered. A forgotten one is checked from its first chunk. */
const SCOPES_MAX = 1000;

/** The chunks of a scope that were checked for vectors of a model. */
interface Checked {
  /** All chunks up to this row have a vector, except `lacking`. */
  readonly row: number;
  /** Ascending. */
  readonly lacking: readonly number[];
}

/** Facts of scopes and models, the least recently used first. */
export type CheckedCache = Map<string, Checked>;

export function makeCheckedCache(): CheckedCache {
  return new Map();
}

const NOTHING: Unfinished = { waiting: 0, failed: 0, withoutVectors: 0, lastJob: 0, isOlderWaiting: false };

/** Counts what is not searchable yet of a scope. `target` undefined: it does not exist. */
export async function readUnfinished(
  tx: Transaction,
  cache: CheckedCache,
  target: Target | undefined,
  { scope, vectors, upToJob = 0 }: UnfinishedQuery,
): Promise<Unfinished> {
  if (target === undefined) return NOTHING;
  const isResource = "resourceId" in scope;
  const withoutVectors = await countWithoutVectors(tx, cache, target, !isResource, vectors);
  const states = await tx.get<Omit<Unfinished, "withoutVectors">>(
    `WITH unfinished AS (
      SELECT account_id, id, status FROM resource WHERE account_id = @accountId AND scope = @scope
        AND status <> 'chunked' AND NOT is_deleted AND (@id::text IS NULL OR id = @id))
    SELECT count(*) FILTER (WHERE status = 'queued') AS waiting, count(*) FILTER (WHERE status = 'error') AS failed,
      (SELECT coalesce(max(number), 0) FROM job) AS "lastJob",
      EXISTS (SELECT 1 FROM unfinished JOIN job ON job.queue = 'ingest'
        AND job.account_id = unfinished.account_id AND job.name = unfinished.id AND job.number <= @upToJob) AS "isOlderWaiting"
    FROM unfinished`,
    {
      accountId: target.accountId,
      scope: target.scope,
      id: isResource ? scope.resourceId : null,
      upToJob,
    },
  );
  return { ...NOTHING, ...states, withoutVectors };
}

/** Counts chunks without a vector of a model, up to `UNFINISHED_CHUNKS_MAX`. */
async function countWithoutVectors(
  tx: Transaction,
  cache: CheckedCache,
  { accountId, scope, nextSequence, range, rangeChunks }: Target,
  isWholeScope: boolean,
  vectors: UnfinishedQuery["vectors"],
): Promise<number> {
  if (vectors === "none") return 0;
  const model = vectors === "no-model" ? undefined : await findModel(tx, vectors.fingerprint);
  if (model === undefined) return Math.min(rangeChunks, UNFINISHED_CHUNKS_MAX);
  const last = rowOf(scope, nextSequence) - 1;
  const lacking = isWholeScope
    ? await lackingOfScope(tx, cache, { accountId, scope, model }, last)
    : await selectLacking(tx, { accountId, model }, range.first, range.last, UNFINISHED_CHUNKS_MAX);
  const stale = await tx.get<{ readonly count: number }>(
    `SELECT count(*) AS count FROM (SELECT 1 FROM stale_vector
      WHERE account_id = @accountId AND row BETWEEN @first AND @last LIMIT ${UNFINISHED_CHUNKS_MAX}) AS stale`,
    { accountId, ...range },
  );
  return Math.min(lacking.length + (stale?.count ?? 0), UNFINISHED_CHUNKS_MAX);
}

/**
 * Returns the rows of a scope without a vector. A row never loses its vectors of a model while the model serves, so each row that has
 * one is checked once.
 */
async function lackingOfScope(
  tx: Transaction,
  cache: CheckedCache,
  { accountId, scope, model }: { readonly accountId: string; readonly scope: number; readonly model: number },
  last: number,
): Promise<readonly number[]> {
  const key = `${scope} ${model}`;
  const before = cache.get(key) ?? { row: rowOf(scope, 0) - 1, lacking: [] };
  const still = await stillLacking(tx, { accountId, model }, before.lacking);
  const limit = UNFINISHED_CHUNKS_MAX - still.length;
  const more =
    limit === 0 || before.row >= last
      ? []
      : await selectLacking(tx, { accountId, model }, before.row + 1, last, limit);
  const isAll = limit > 0 && more.length < limit;
  const row = isAll ? Math.max(before.row, last) : Math.max(before.row, more.at(-1) ?? before.row);
  const lacking = [...still, ...more];
  cache.delete(key);
  cache.set(key, { row, lacking });
  const [oldest] = cache.keys();
  if (cache.size > SCOPES_MAX && oldest !== undefined) cache.delete(oldest);
  return lacking;
}

async function selectLacking(
  tx: Transaction,
  { accountId, model }: { readonly accountId: string; readonly model: number },
  first: number,
  last: number,
  limit: number,
): Promise<number[]> {
  const rows = await tx.all<{ readonly row: number }>(
    `SELECT row FROM chunk WHERE account_id = @accountId AND row BETWEEN @first AND @last
      AND NOT EXISTS (SELECT 1 FROM chunk_vector WHERE chunk_vector.account_id = @accountId AND chunk_vector.row = chunk.row AND model = @model)
    ORDER BY row LIMIT @limit`,
    { accountId, model, first, last, limit },
  );
  return rows.map(({ row }) => row);
}

async function stillLacking(
  tx: Transaction,
  { accountId, model }: { readonly accountId: string; readonly model: number },
  rows: readonly number[],
): Promise<number[]> {
  if (rows.length === 0) return [];
  const found = await tx.all<{ readonly row: number }>(
    `SELECT row FROM chunk WHERE account_id = @accountId AND row = ANY (@rows::bigint[])
      AND NOT EXISTS (SELECT 1 FROM chunk_vector WHERE chunk_vector.account_id = @accountId AND chunk_vector.row = chunk.row AND model = @model)
    ORDER BY row`,
    { accountId, model, rows },
  );
  return found.map(({ row }) => row);
}

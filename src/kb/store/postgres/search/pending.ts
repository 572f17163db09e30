import type { Pending } from "../../../../wire/search.ts";
import { rowOf } from "../../../index/rows.ts";
import { type Checked, countDocuments, type Lacking, SCOPES_MAX } from "../../search/checked-chunks.ts";
import { PENDING_CHUNKS_MAX, type PendingQuery } from "../../search-index.ts";
import type { Transaction } from "../database/connections.ts";
import type { Target } from "../scopes/target.ts";
import { findModel } from "../vectors/nearest.ts";

/** Facts of scopes and models, the least recently used first. */
export type CheckedCache = Map<string, Checked>;

export function makeCheckedCache(): CheckedCache {
  return new Map();
}

/** Counts the documents of a scope that wait. `target` undefined: it does not exist. */
export async function readPending(
  tx: Transaction,
  cache: CheckedCache,
  target: Target | undefined,
  { scope, fingerprint }: PendingQuery,
): Promise<Pending> {
  if (target === undefined) return { read: 0, embed: 0 };
  const isResource = "resourceId" in scope;
  const lacking =
    fingerprint === undefined
      ? { embed: 0 }
      : await countLacking(tx, cache, target, !isResource, fingerprint);
  const queued = await tx.get<{ readonly count: number }>(
    `SELECT count(*) AS count FROM resource WHERE account_id = @accountId AND scope = @scope
       AND status = 'queued' AND status <> 'chunked' AND NOT is_deleted AND (@id::text IS NULL OR id = @id)`,
    { accountId: target.accountId, scope: target.scope, id: isResource ? scope.resourceId : null },
  );
  return { read: queued?.count ?? 0, ...lacking };
}

/** Counts documents with a chunk that has no vector of a model. */
async function countLacking(
  tx: Transaction,
  cache: CheckedCache,
  { accountId, scope, nextSequence, range }: Target,
  isWholeScope: boolean,
  fingerprint: string,
): Promise<Omit<Pending, "read">> {
  // No chunk has a vector of a model without a number.
  const model = (await findModel(tx, fingerprint)) ?? -1;
  const last = rowOf(scope, nextSequence) - 1;
  const lacking = isWholeScope
    ? await lackingOfScope(tx, cache, { accountId, scope, model }, last)
    : await selectLacking(tx, { accountId, model }, range.first, range.last, 1);
  const stale = await tx.all<{ readonly resource: number }>(
    `SELECT chunk.resource FROM stale_vector JOIN chunk USING (account_id, row)
      WHERE account_id = @accountId AND row BETWEEN @first AND @last LIMIT ${PENDING_CHUNKS_MAX}`,
    { accountId, ...range },
  );
  return countDocuments([...lacking, ...stale].map(({ resource }) => resource));
}

/**
 * Returns the chunks of a scope without a vector. A row never loses its vectors of a model while the model serves, so each row that
 * has one is checked once.
 */
async function lackingOfScope(
  tx: Transaction,
  cache: CheckedCache,
  { accountId, scope, model }: { readonly accountId: string; readonly scope: number; readonly model: number },
  last: number,
): Promise<readonly Lacking[]> {
  const key = `${scope} ${model}`;
  const before = cache.get(key) ?? { row: rowOf(scope, 0) - 1, lacking: [] };
  const still = await stillLacking(tx, { accountId, model }, before.lacking);
  const limit = PENDING_CHUNKS_MAX - still.length;
  const more =
    limit === 0 || before.row >= last
      ? []
      : await selectLacking(tx, { accountId, model }, before.row + 1, last, limit);
  const isAll = limit > 0 && more.length < limit;
  const row = isAll ? Math.max(before.row, last) : Math.max(before.row, more.at(-1)?.row ?? before.row);
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
): Promise<readonly Lacking[]> {
  return tx.all<Lacking>(
    `SELECT row, resource FROM chunk WHERE account_id = @accountId AND row BETWEEN @first AND @last
      AND NOT EXISTS (SELECT 1 FROM chunk_vector WHERE chunk_vector.account_id = @accountId AND chunk_vector.row = chunk.row AND model = @model)
    ORDER BY row LIMIT @limit`,
    { accountId, model, first, last, limit },
  );
}

async function stillLacking(
  tx: Transaction,
  { accountId, model }: { readonly accountId: string; readonly model: number },
  lacking: readonly Lacking[],
): Promise<readonly Lacking[]> {
  if (lacking.length === 0) return [];
  return tx.all<Lacking>(
    `SELECT row, resource FROM chunk WHERE account_id = @accountId AND row = ANY (@rows::bigint[])
      AND NOT EXISTS (SELECT 1 FROM chunk_vector WHERE chunk_vector.account_id = @accountId AND chunk_vector.row = chunk.row AND model = @model)
    ORDER BY row`,
    { accountId, model, rows: lacking.map(({ row }) => row) },
  );
}

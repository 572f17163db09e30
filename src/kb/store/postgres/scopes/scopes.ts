import { KbsyncError } from "../../../../lib/failure.ts";
import { rowOf, SCOPE_NUMBER_MAX, SEQUENCE_MAX } from "../../../index/rows.ts";
import type { NewResource, ResourceKey } from "../../resources.ts";
import type { Transaction } from "../database/connections.ts";

/** Returns the scope of the resource's collection and owner; creates it if it does not exist. Throws `store_full`. */
export async function openScope(
  tx: Transaction,
  { accountId, tier, ownerId }: Pick<NewResource, "accountId" | "tier" | "ownerId">,
): Promise<number> {
  const collection = await tx.get<{ id: string; scope: number | null }>(
    `SELECT collection.id, scope.number AS scope
    FROM collection LEFT JOIN scope ON scope.collection_id = collection.id AND owner_id = @ownerId
    WHERE account_id = @accountId AND tier = @tier`,
    { accountId, tier, ownerId },
  );
  if (collection === undefined) {
    throw new KbsyncError(`no account ${accountId} in the store`, { code: "no_account", subject: accountId });
  }
  if (collection.scope !== null) return collection.scope;
  const used = await tx.get<{ last: number }>("SELECT last_value AS last FROM scope_number");
  if ((used?.last ?? 0) >= SCOPE_NUMBER_MAX) throw full(`${SCOPE_NUMBER_MAX} owners of all accounts`);
  // Another process may create it at the same time: one of them waits here for the other.
  const made = await tx.get<{ number: number }>(
    `INSERT INTO scope (collection_id, owner_id) VALUES (@collectionId, @ownerId)
    ON CONFLICT (collection_id, owner_id) DO UPDATE SET owner_id = excluded.owner_id RETURNING number`,
    { collectionId: collection.id, ownerId },
  );
  if (made === undefined) throw new TypeError("a scope just written has no number");
  return made.number;
}

/**
 * Locks the scopes of resources, in the order of their numbers. From here on no other transaction changes one of these resources, so
 * what is read of them afterwards stays as it is.
 */
export async function lockScopes(
  tx: Transaction,
  accountId: string,
  ids: readonly ResourceKey["id"][],
): Promise<void> {
  await tx.run(
    `SELECT 1 FROM scope WHERE number IN (
      SELECT scope FROM resource WHERE account_id = @accountId AND id = ANY (@ids::text[]))
    ORDER BY number FOR UPDATE`,
    { accountId, ids },
  );
}

/** Changes of a scope's counts; negative: removes. */
export interface ScopeChange {
  readonly resources?: number;
  readonly chunks?: number;
  readonly words?: number;
  /** Rows to reserve. */
  readonly rows?: number;
  /** Whether a filter may match other chunks than before. */
  readonly refilters?: boolean;
}

/** Locks a scope, changes its counts, and returns the first of the reserved rows. */
export async function changeScope(tx: Transaction, scope: number, change: ScopeChange): Promise<number> {
  const { resources = 0, chunks = 0, words = 0, rows = 0, refilters = false } = change;
  const after = await tx.get<{ next: number }>(
    `UPDATE scope SET next_sequence = next_sequence + @rows, resources = resources + @resources, chunks = chunks + @chunks,
      words = words + @words, refiltered = refiltered + @refilters::boolean::int
    WHERE number = @scope RETURNING next_sequence AS next`,
    { scope, rows, resources, chunks, words, refilters },
  );
  if (after === undefined) throw new TypeError("the scope of a resource was not found");
  if (after.next > SEQUENCE_MAX) throw full(`${SEQUENCE_MAX} chunks written for one owner`);
  return rowOf(scope, after.next - rows);
}

function full(what: string): KbsyncError {
  return new KbsyncError(`the knowledge base has room for no more than ${what}`, { code: "store_full" });
}

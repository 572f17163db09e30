import type { Inside } from "../../methods.ts";
import type { OwnerCounts } from "../../records.ts";
import type { Connection } from "../database/connection.ts";

/** Prepares the list of an account's owners, on a connection of either kind. */
export function prepareOwners(db: Connection): Inside<"read">["records"]["owners"] {
  const select = db.prepare<[string, string, string, number], OwnerCounts>(`
    SELECT owner_id AS ownerId, collection_id AS collectionId, tier, resources, chunks
    FROM scope JOIN collection ON collection.id = scope.collection_id
    WHERE account_id = ? AND (collection_id, owner_id) > (?, ?) AND resources > 0
    ORDER BY collection_id, owner_id LIMIT ?`);
  return ({ accountId, after, limit }) =>
    select.all(accountId, after?.collectionId ?? "", after?.ownerId ?? "", limit);
}

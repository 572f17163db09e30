import { TIERS } from "../../../../wire/constants.ts";
import type { Account, KeyRecord } from "../../accounts.ts";
import type { OwnerCounts, ResourceKey } from "../../resources.ts";
import type { Inside } from "../../methods.ts";
import type { Connection } from "../database/connection.ts";
import { changedKey, keyOf, type KeyRow } from "../../rows/keys.ts";

/** Writes of accounts and keys. Each runs inside a transaction of the caller. */
export type AccountWrites = Pick<Inside<"write" | "free">["records"], "putKey" | "changeKey"> & {
  /** Returns the account of that name, or creates it; `ids` are for a new account and its collections. */
  ensureAccount(name: string, ids: readonly string[]): Account;
};

/** Prepares the statements on the writing connection. */
export function prepareAccountWrites(db: Connection): AccountWrites {
  const selectAccount = db.prepare<[string], Account>("SELECT id, name FROM account WHERE name = ?");
  const insertAccount = db.prepare("INSERT INTO account (id, name) VALUES (?, ?)");
  const insertCollection = db.prepare("INSERT INTO collection (id, account_id, tier) VALUES (?, ?, ?)");
  const upsertKey = db.prepare(`
    INSERT INTO api_key (sha256, id, hint, account_id, name, scopes, created_at, expires_at, revoked_at)
    VALUES (@sha256, @id, @hint, @accountId, @name, @scopes, @createdAt, @expiresAt, @revokedAt)
    ON CONFLICT (sha256) DO UPDATE SET name = excluded.name, scopes = excluded.scopes, expires_at = excluded.expires_at`);
  const selectKey = prepareKeyById(db);
  const updateKey = db.prepare(`
    UPDATE api_key SET name = @name, scopes = @scopes, expires_at = @expiresAt, revoked_at = @revokedAt
    WHERE id = @id AND account_id = @accountId`);
  const write = (key: KeyRecord, statement: typeof upsertKey): void => {
    statement.run({ ...key, scopes: JSON.stringify(key.scopes) });
  };
  return {
    ensureAccount(name, ids) {
      const found = selectAccount.get(name);
      if (found !== undefined) return found;
      const [id = "", ...collections] = ids;
      insertAccount.run(id, name);
      for (const [at, tier] of TIERS.entries()) insertCollection.run(collections[at], id, tier);
      return { id, name };
    },
    putKey: (key) => write(key, upsertKey),
    changeKey(change) {
      const before = selectKey(change);
      if (before === undefined) return undefined;
      const after = changedKey(before, change);
      write(after, updateKey);
      return after;
    },
  };
}

/** Reads of accounts, owners and keys. */
export type AccountReads = Pick<
  Inside<"read" | "lookup">["records"],
  "accounts" | "owners" | "keys" | "keyByHash"
>;

/** Prepares the statements on a connection of either kind. */
export function prepareAccountReads(db: Connection): AccountReads {
  const selectKey = db.prepare<[string], KeyRow>("SELECT * FROM api_key WHERE sha256 = ?");
  const selectKeys = db.prepare<[string], KeyRow>(
    "SELECT * FROM api_key WHERE account_id = ? ORDER BY created_at, id",
  );
  const selectAccounts = db.prepare<[], Account>("SELECT id, name FROM account ORDER BY name");
  const selectOwners = db.prepare<[string, string, string, number], OwnerCounts>(`
    SELECT owner_id AS ownerId, collection_id AS collectionId, tier, resources, chunks
    FROM scope JOIN collection ON collection.id = scope.collection_id
    WHERE account_id = ? AND (collection_id, owner_id) > (?, ?) AND resources > 0
    ORDER BY collection_id, owner_id LIMIT ?`);
  return {
    owners: ({ accountId, after, limit }) =>
      selectOwners.all(accountId, after?.collectionId ?? "", after?.ownerId ?? "", limit),
    keyByHash(sha256) {
      const row = selectKey.get(sha256);
      return row === undefined ? undefined : keyOf(row);
    },
    keys: (accountId) => selectKeys.all(accountId).map(keyOf),
    accounts: () => selectAccounts.all(),
  };
}

function prepareKeyById(db: Connection): (at: ResourceKey) => KeyRecord | undefined {
  const select = db.prepare<[string, string], KeyRow>(
    "SELECT * FROM api_key WHERE id = ? AND account_id = ?",
  );
  return ({ id, accountId }) => {
    const row = select.get(id, accountId);
    return row === undefined ? undefined : keyOf(row);
  };
}

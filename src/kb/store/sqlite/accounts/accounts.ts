import { linkAddress, type LinkFetch } from "../../links.ts";
import { TIERS } from "../../../../wire/constants.ts";
import type { Account, KeyRecord } from "../../accounts.ts";
import type { OwnerCounts, ResourceKey } from "../../resources.ts";
import type { Inside } from "../../methods.ts";
import type { Connection } from "../database/connection.ts";
import {
  changedKey,
  effectiveKey,
  keyOf,
  NO_GRANT,
  SELECT_KEYS,
  type KeyRow,
  type ParentRow,
} from "../../rows/keys.ts";

/** Maximum stored link fetches; the oldest are evicted first, which costs a full response at the link's next update. */
const LINK_FETCHES_MAX = 100_000;
/** Excess fetches removed with each write: more than it adds. */
const REMOVED_MAX = 4;
/** Grants of a key: more clients than a person uses. One more removes the one that was refreshed longest ago. */
const GRANTS_MAX = 100;

/** Writes of accounts, keys and link fetches. Each runs inside a transaction of the caller. */
export type AccountWrites = Pick<
  Inside<"write" | "free">["records"],
  "putKey" | "changeKey" | "rotateGrant" | "noteLinkFetch"
> & {
  /** Returns the account of that name, or creates it; `ids` are for a new account and its collections. */
  ensureAccount(name: string, ids: readonly string[]): Account;
  /** Removes the stored fetch of a link. `url` is as sent by the client. */
  forgetLink(accountId: string, url: string): void;
};

/** Prepares the statements on the writing connection. */
export function prepareAccountWrites(db: Connection): AccountWrites {
  const selectAccount = db.prepare<[string], Account>("SELECT id, name FROM account WHERE name = ?");
  const insertAccount = db.prepare("INSERT INTO account (id, name) VALUES (?, ?)");
  const insertCollection = db.prepare("INSERT INTO collection (id, account_id, tier) VALUES (?, ?, ?)");
  const upsertKey = db.prepare(`
    INSERT INTO api_key (sha256, id, hint, account_id, name, scopes, created_at, expires_at, revoked_at,
      parent_id, family_sha256, refresh_sha256, access_until)
    VALUES (@sha256, @id, @hint, @accountId, @name, @scopes, @createdAt, @expiresAt, @revokedAt,
      @parentId, @familySha256, @refreshSha256, @accessUntil)
    ON CONFLICT (sha256) DO UPDATE SET name = excluded.name, scopes = excluded.scopes, expires_at = excluded.expires_at`);
  const selectKey = prepareKeyById(db);
  const updateKey = db.prepare(`
    UPDATE api_key SET name = @name, scopes = @scopes, expires_at = @expiresAt, revoked_at = @revokedAt
    WHERE id = @id AND account_id = @accountId`);
  const selectGrant = db.prepare<[string], KeyRow & ParentRow>(`${SELECT_KEYS} WHERE key.id = ?`);
  const updateGrant = db.prepare(`
    UPDATE api_key SET sha256 = @sha256, hint = @hint, expires_at = @expiresAt, refresh_sha256 = @refreshSha256,
      access_until = @accessUntil
    WHERE id = @id`);
  const endSessions = db.prepare("DELETE FROM console_session WHERE key_sha256 = ?");
  const removableGrants = prepareRemovableGrants(db);
  const remove = db.prepare("DELETE FROM api_key WHERE sha256 = ?");
  const revokeGrant = db.prepare("UPDATE api_key SET revoked_at = ? WHERE id = ?");
  const replaceLink = db.prepare(`
    INSERT OR REPLACE INTO link_fetch (account_id, url, text_sha256, etag, last_modified)
    VALUES (@accountId, @url, @textSha256, @etag, @lastModified)`);
  const removeOldLinks = db.prepare(`
    DELETE FROM link_fetch WHERE number IN (
      SELECT number FROM link_fetch WHERE number <= ? ORDER BY number LIMIT ${REMOVED_MAX})`);
  const deleteLink = db.prepare("DELETE FROM link_fetch WHERE account_id = ? AND url = ?");
  const write = (key: KeyRecord, statement: typeof upsertKey): void => {
    const { grant = NO_GRANT, ...rest } = key;
    statement.run({ ...rest, ...grant, scopes: JSON.stringify(key.scopes) });
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
    putKey(key) {
      write(key, upsertKey);
      if (key.grant === undefined) return;
      for (const sha256 of removableGrants(key)) {
        endSessions.run(sha256);
        remove.run(sha256);
      }
    },
    changeKey(change) {
      const before = selectKey(change);
      if (before === undefined) return undefined;
      const after = changedKey(before, change);
      write(after, updateKey);
      return after;
    },
    rotateGrant({ id, sentSha256, familySha256, nowIso, next }) {
      const row = selectGrant.get(id);
      if (row === undefined) return undefined;
      const found = effectiveKey(row);
      const hasExpired = found.expiresAt !== null && Date.parse(found.expiresAt) <= Date.parse(nowIso);
      const hasEnded = found.revokedAt !== null || hasExpired;
      if (hasEnded || found.grant?.familySha256 !== familySha256) return undefined;
      if (found.grant.refreshSha256 === sentSha256) {
        endSessions.run(found.sha256);
        updateGrant.run({ ...next, id });
      } else revokeGrant.run(nowIso, id);
      const after = selectGrant.get(id);
      return after === undefined ? undefined : effectiveKey(after);
    },
    noteLinkFetch(fetch) {
      const { lastInsertRowid } = replaceLink.run(fetch);
      // Numbers ascend with time, so fetches further back than the bound are too many.
      removeOldLinks.run(Number(lastInsertRowid) - LINK_FETCHES_MAX);
    },
    forgetLink: (accountId, url) => void deleteLink.run(accountId, linkAddress(url)),
  };
}

/** Reads of accounts, owners, keys and link fetches. */
export type AccountReads = Pick<
  Inside<"read" | "lookup">["records"],
  "accounts" | "owners" | "keys" | "keyByHash" | "linkFetch"
>;

/** Prepares the statements on a connection of either kind. */
export function prepareAccountReads(db: Connection): AccountReads {
  const selectKey = db.prepare<[string], KeyRow & ParentRow>(`${SELECT_KEYS} WHERE key.sha256 = ?`);
  const selectKeys = db.prepare<[string], KeyRow & ParentRow>(
    `${SELECT_KEYS} WHERE key.account_id = ? ORDER BY key.created_at, key.id`,
  );
  const selectAccounts = db.prepare<[], Account>("SELECT id, name FROM account ORDER BY name");
  const selectLink = db.prepare<[string, string], LinkFetch>(`
    SELECT account_id AS accountId, url, text_sha256 AS textSha256, etag, last_modified AS lastModified
    FROM link_fetch WHERE account_id = ? AND url = ?`);
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
      return row === undefined ? undefined : effectiveKey(row);
    },
    keys: (accountId) => selectKeys.all(accountId).map(effectiveKey),
    accounts: () => selectAccounts.all(),
    linkFetch: (accountId, url) => selectLink.get(accountId, url),
  };
}

/** Returns a function that finds the grants that a new one replaces, by their hashes. */
function prepareRemovableGrants(db: Connection): (made: KeyRecord) => readonly string[] {
  const select = db.prepare<[Record<"accountId" | "sha256" | "parentId" | "now", string>], string>(`
    SELECT key.sha256 FROM api_key AS key LEFT JOIN api_key AS parent ON parent.id = key.parent_id
    WHERE key.account_id = @accountId AND key.parent_id IS NOT NULL AND key.sha256 <> @sha256 AND (
      coalesce(key.revoked_at, parent.revoked_at) IS NOT NULL OR parent.id IS NULL
      OR min(julianday(coalesce(key.expires_at, '9999-12-31')), julianday(coalesce(parent.expires_at, '9999-12-31')))
        <= julianday(@now))
    UNION
    SELECT sha256 FROM (
      SELECT sha256 FROM api_key WHERE account_id = @accountId AND parent_id = @parentId
        AND sha256 <> @sha256
      ORDER BY access_until DESC, created_at DESC LIMIT -1 OFFSET ${GRANTS_MAX - 1})`);
  return ({ accountId, sha256, createdAt, grant }) =>
    select.pluck().all({ accountId, sha256, parentId: grant?.parentId ?? "", now: createdAt });
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

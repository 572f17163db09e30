import type { KeyChange, KeyRecord } from "../accounts.ts";

/** A row of `api_key`. */
export interface KeyRow {
  readonly sha256: string;
  readonly id: string;
  readonly hint: string;
  readonly account_id: string;
  readonly name: string;
  readonly scopes: string;
  readonly created_at: string;
  readonly expires_at: string | null;
  readonly revoked_at: string | null;
  readonly parent_id: string | null;
  readonly family_sha256: string | null;
  readonly refresh_sha256: string | null;
  readonly access_until: string | null;
}

/** Converts a row to a key. */
export function keyOf(row: KeyRow): KeyRecord {
  const { parent_id: parentId, family_sha256: familySha256 } = row;
  const { refresh_sha256: refreshSha256, access_until: accessUntil } = row;
  const isGrant =
    parentId !== null && familySha256 !== null && refreshSha256 !== null && accessUntil !== null;
  return {
    sha256: row.sha256,
    id: row.id,
    hint: row.hint,
    accountId: row.account_id,
    name: row.name,
    scopes: JSON.parse(row.scopes) as KeyRecord["scopes"], // written by this store from a KeyRecord
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    revokedAt: row.revoked_at,
    ...(isGrant && { grant: { parentId, familySha256, refreshSha256, accessUntil } }),
  };
}

/** Returns a key after a change. A key that was revoked stays so, from the time of the first revocation. */
export function changedKey(before: KeyRecord, change: KeyChange): KeyRecord {
  return {
    ...before,
    name: change.name ?? before.name,
    scopes: change.scopes ?? before.scopes,
    expiresAt: change.expiresAt === undefined ? before.expiresAt : change.expiresAt,
    revokedAt: before.revokedAt ?? change.revokedAt ?? null,
  };
}

/** The columns of a key that is no grant. */
export const NO_GRANT = { parentId: null, familySha256: null, refreshSha256: null, accessUntil: null };

/** Keys, each with the key that it was derived from. */
export const SELECT_KEYS = `
  SELECT key.*, parent.id AS of_id, parent.scopes AS of_scopes, parent.expires_at AS of_expires_at,
    parent.revoked_at AS of_revoked_at
  FROM api_key AS key LEFT JOIN api_key AS parent ON parent.id = key.parent_id`;

/** The columns of the key that a key was derived from. */
export interface ParentRow {
  readonly of_id: string | null;
  readonly of_scopes: string | null;
  readonly of_expires_at: string | null;
  readonly of_revoked_at: string | null;
}

/** Returns a key with what the key that it was derived from leaves of it. */
export function effectiveKey(row: KeyRow & ParentRow): KeyRecord {
  const key = keyOf(row);
  if (key.grant === undefined) return key;
  const scopes = JSON.parse(row.of_scopes ?? "[]") as KeyRecord["scopes"]; // written by this store from a KeyRecord
  const ends = [key.expiresAt, row.of_expires_at].filter((end) => end !== null);
  return {
    ...key,
    scopes: key.scopes.filter((scope) => scopes.includes(scope) || scopes.includes("admin")),
    expiresAt: ends.toSorted((one, other) => Date.parse(one) - Date.parse(other))[0] ?? null,
    revokedAt: row.of_id === null ? key.createdAt : (key.revokedAt ?? row.of_revoked_at),
  };
}

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
}

/** Converts a row to a key. */
export function keyOf(row: KeyRow): KeyRecord {
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
  };
}

/** Returns a key after a change. A key that was revoked stays so, from the time of the first revocation. */
export function changedKey(before: KeyRecord, change: KeyChange): KeyRecord {
  return {
    ...before,
    expiresAt: change.expiresAt === undefined ? before.expiresAt : change.expiresAt,
    revokedAt: before.revokedAt ?? change.revokedAt ?? null,
  };
}

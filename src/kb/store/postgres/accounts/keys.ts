import type { KeyRecord, SessionRecord } from "../../accounts.ts";
import {
  changedKey,
  effectiveKey,
  keyOf,
  NO_GRANT,
  SELECT_KEYS,
  type KeyRow,
  type ParentRow,
} from "../../rows/keys.ts";
import type { Records } from "../../records.ts";
import type { Transaction } from "../database/connections.ts";
import type { Parameters } from "../../sql/steps.ts";

/** Grants of a key: more clients than a person uses. One more removes the one that was refreshed longest ago. */
const GRANTS_MAX = 100;
/** Maximum stored sessions, of which each takes a valid key to open. */
const SESSIONS_MAX = 1000;

/** Keys inside a transaction. */
export function keysOn(
  tx: Transaction,
): Pick<Records, "putKey" | "keyByHash" | "rotateGrant" | "keys" | "changeKey"> {
  const select = (where: string, parameters: Parameters): Promise<(KeyRow & ParentRow)[]> =>
    tx.all<KeyRow & ParentRow>(`${SELECT_KEYS} WHERE ${where}`, parameters);
  return {
    async putKey(key) {
      await tx.run(
        `INSERT INTO api_key (sha256, id, hint, account_id, name, scopes, created_at, expires_at, revoked_at,
          parent_id, family_sha256, refresh_sha256, access_until)
        VALUES (@sha256, @id, @hint, @accountId, @name, @scopes, @createdAt, @expiresAt, @revokedAt,
          @parentId, @familySha256, @refreshSha256, @accessUntil)
        ON CONFLICT (sha256) DO UPDATE SET name = excluded.name, scopes = excluded.scopes, expires_at = excluded.expires_at`,
        columnsOf(key),
      );
      if (key.grant !== undefined) await removeOldGrants(tx, key, key.grant.parentId);
    },
    keyByHash: async (sha256) => {
      const [row] = await select("key.sha256 = @sha256", { sha256 });
      return row === undefined ? undefined : effectiveKey(row);
    },
    keys: async (accountId) =>
      (await select("key.account_id = @accountId ORDER BY key.created_at, key.id", { accountId })).map(
        effectiveKey,
      ),
    async changeKey(change) {
      const row = await tx.get<KeyRow>(
        "SELECT * FROM api_key WHERE id = @id AND account_id = @accountId FOR NO KEY UPDATE",
        { id: change.id, accountId: change.accountId },
      );
      if (row === undefined) return undefined;
      const before = keyOf(row);
      const after = changedKey(before, change);
      await tx.run(
        `UPDATE api_key SET name = @name, scopes = @scopes, expires_at = @expiresAt, revoked_at = @revokedAt
        WHERE id = @id AND account_id = @accountId`,
        columnsOf(after),
      );
      return after;
    },
    async rotateGrant({ id, sentSha256, familySha256, nowIso, next }) {
      // The second of two uses of one refresh token sees that the first has replaced it. The parent may not change meanwhile.
      const [row] = await select("key.id = @id FOR UPDATE OF key", { id });
      if (row === undefined) return undefined;
      const found = effectiveKey(row);
      const hasExpired = found.expiresAt !== null && Date.parse(found.expiresAt) <= Date.parse(nowIso);
      const hasEnded = found.revokedAt !== null || hasExpired;
      if (hasEnded || found.grant?.familySha256 !== familySha256) return undefined;
      if (found.grant.refreshSha256 === sentSha256) {
        await tx.run("DELETE FROM console_session WHERE key_sha256 = @sha256", { sha256: found.sha256 });
        await tx.run(
          `UPDATE api_key SET sha256 = @sha256, hint = @hint, expires_at = @expiresAt, refresh_sha256 = @refreshSha256,
            access_until = @accessUntil
          WHERE id = @id`,
          { ...next, id },
        );
      } else await tx.run("UPDATE api_key SET revoked_at = @nowIso WHERE id = @id", { nowIso, id });
      const [after] = await select("key.id = @id", { id });
      return after === undefined ? undefined : effectiveKey(after);
    },
  };
}

function columnsOf({ grant, ...key }: KeyRecord): Parameters {
  return { ...key, ...(grant ?? NO_GRANT), scopes: JSON.stringify(key.scopes) };
}

/** Removes the grants of an account that have ended, and of a new grant's parent those that were refreshed longest ago. */
async function removeOldGrants(
  tx: Transaction,
  { accountId, sha256, createdAt: now }: KeyRecord,
  parentId: string,
): Promise<void> {
  const old = await tx.all<{ sha256: string }>(
    `SELECT key.sha256 FROM api_key AS key LEFT JOIN api_key AS parent ON parent.id = key.parent_id
    WHERE key.account_id = @accountId AND key.parent_id IS NOT NULL AND key.sha256 <> @sha256 AND (
      coalesce(key.revoked_at, parent.revoked_at) IS NOT NULL OR parent.id IS NULL
      OR least(key.expires_at::timestamptz, parent.expires_at::timestamptz) <= @now::timestamptz)
    UNION
    (SELECT sha256 FROM api_key WHERE account_id = @accountId AND parent_id = @parentId AND sha256 <> @sha256
    ORDER BY access_until DESC, created_at DESC OFFSET ${GRANTS_MAX - 1})`,
    { accountId, sha256, now, parentId },
  );
  if (old.length === 0) return;
  const hashes = old.map((row) => row.sha256);
  await tx.run("DELETE FROM console_session WHERE key_sha256 = ANY (@hashes::text[])", { hashes });
  await tx.run("DELETE FROM api_key WHERE sha256 = ANY (@hashes::text[])", { hashes });
}

/** Family of the advisory lock; the queue and spending have others. */
const SESSION_LOCK = 4;
const SESSION = 'sha256, key_sha256 AS "keySha256", kind, expires_ms AS "expiresMs"';

/** Sessions of the console inside a transaction. */
export function sessionsOn(tx: Transaction): Pick<Records, "putSession" | "session" | "takeSession"> {
  return {
    async putSession(session, nowMs) {
      // One at a time, so that each counts the others.
      await tx.run(`SELECT pg_advisory_xact_lock(${SESSION_LOCK}, 0)`);
      await tx.run("DELETE FROM console_session WHERE expires_ms <= @nowMs", { nowMs });
      await tx.run(
        `INSERT INTO console_session (sha256, key_sha256, kind, expires_ms)
        VALUES (@sha256, @keySha256, @kind, @expiresMs)
        ON CONFLICT (sha256) DO UPDATE SET key_sha256 = excluded.key_sha256, kind = excluded.kind,
          expires_ms = excluded.expires_ms`,
        { ...session },
      );
      await tx.run(`
        DELETE FROM console_session WHERE sha256 IN (
          SELECT sha256 FROM console_session ORDER BY expires_ms DESC OFFSET ${SESSIONS_MAX})`);
    },
    session: (sha256) =>
      tx.get<SessionRecord>(`SELECT ${SESSION} FROM console_session WHERE sha256 = @sha256`, { sha256 }),
    takeSession: (sha256) =>
      tx.get<SessionRecord>(`DELETE FROM console_session WHERE sha256 = @sha256 RETURNING ${SESSION}`, {
        sha256,
      }),
  };
}

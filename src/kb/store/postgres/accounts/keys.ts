import type { KeyRecord, SessionRecord } from "../../accounts.ts";
import { changedKey, keyOf, type KeyRow } from "../../rows/keys.ts";
import type { Records } from "../../records.ts";
import type { Transaction } from "../database/connections.ts";
import type { Parameters } from "../../sql/steps.ts";

/** Maximum stored sessions, of which each takes a valid key to open. */
const SESSIONS_MAX = 1000;

/** Keys inside a transaction. */
export function keysOn(tx: Transaction): Pick<Records, "putKey" | "keyByHash" | "keys" | "changeKey"> {
  return {
    async putKey(key) {
      await tx.run(
        `INSERT INTO api_key (sha256, id, hint, account_id, name, scopes, created_at, expires_at, revoked_at)
        VALUES (@sha256, @id, @hint, @accountId, @name, @scopes, @createdAt, @expiresAt, @revokedAt)
        ON CONFLICT (sha256) DO UPDATE SET name = excluded.name, scopes = excluded.scopes, expires_at = excluded.expires_at`,
        columnsOf(key),
      );
    },
    keyByHash: async (sha256) => {
      const row = await tx.get<KeyRow>("SELECT * FROM api_key WHERE sha256 = @sha256", { sha256 });
      return row === undefined ? undefined : keyOf(row);
    },
    async keys(accountId) {
      const rows = await tx.all<KeyRow>(
        "SELECT * FROM api_key WHERE account_id = @accountId ORDER BY created_at, id",
        { accountId },
      );
      return rows.map(keyOf);
    },
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
  };
}

function columnsOf(key: KeyRecord): Parameters {
  return { ...key, scopes: JSON.stringify(key.scopes) };
}

/** Family of the advisory lock; `queue.ts` and `words/merges.ts` have the others. */
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

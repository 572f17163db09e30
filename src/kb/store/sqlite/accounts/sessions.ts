import type { Inside } from "../../methods.ts";
import type { SessionRecord } from "../../accounts.ts";
import type { Connection } from "../database/connection.ts";

/** Maximum stored sessions, of which each takes a valid key to open. */
const SESSIONS_MAX = 1000;

/** Writes of the console's sessions. Each runs inside a transaction of the caller. */
export type SessionWrites = Pick<Inside<"write">["records"], "putSession" | "takeSession">;

/** Prepares the statements on the writing connection. */
export function prepareSessionWrites(db: Connection): SessionWrites {
  const replace = db.prepare(`
    INSERT OR REPLACE INTO console_session (sha256, key_sha256, kind, expires_ms)
    VALUES (@sha256, @keySha256, @kind, @expiresMs)`);
  const removeEnded = db.prepare("DELETE FROM console_session WHERE expires_ms <= ?");
  const removeSurplus = db.prepare(`
    DELETE FROM console_session WHERE sha256 IN (
      SELECT sha256 FROM console_session ORDER BY expires_ms DESC LIMIT -1 OFFSET ${SESSIONS_MAX})`);
  const remove = db.prepare<[string], SessionRecord>(`
    DELETE FROM console_session WHERE sha256 = ?
    RETURNING sha256, key_sha256 AS keySha256, kind, expires_ms AS expiresMs`);
  return {
    putSession(session, nowMs) {
      removeEnded.run(nowMs);
      replace.run(session);
      removeSurplus.run();
    },
    takeSession: (sha256) => remove.get(sha256),
  };
}

/** Prepares the read on a connection of either kind. */
export function prepareSessionReads(db: Connection): Pick<Inside<"lookup">["records"], "session"> {
  const select = db.prepare<[string], SessionRecord>(`
    SELECT sha256, key_sha256 AS keySha256, kind, expires_ms AS expiresMs FROM console_session WHERE sha256 = ?`);
  return { session: (sha256) => select.get(sha256) };
}

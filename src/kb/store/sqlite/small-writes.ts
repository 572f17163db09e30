import type { Account, KeptAnswer, KeyRecord, StoredFile } from "../store.ts";
import { Tier } from "../../../wire/primitives.ts";
import type { Connection } from "./connection.ts";

/** How long an answer to an idempotency key is kept. */
export const ANSWER_KEPT_MS = 24 * 60 * 60 * 1000;
/** Most answers kept, oldest out first: some 100 MB at the worst usual size; an initial load makes one a file. */
const ANSWERS_MAX = 100_000;
/** Answers collected at a time: each write takes out more than it brings in. */
const COLLECTED_MAX = 4;

/** Writes of accounts, keys, files and kept answers; each runs inside a transaction of the caller. */
export interface SmallWrites {
  /** The account of that name; `ids` are for the account and its collections when it is new. */
  ensureAccount(name: string, ids: readonly string[]): Account;
  putKey(key: KeyRecord): void;
  addFile(file: StoredFile): void;
  remember(accountId: string, key: string, answer: KeptAnswer, nowMs: number): void;
}

/** Prepares the statements on the writing connection. */
export function prepareSmallWrites(db: Connection): SmallWrites {
  const selectAccount = db.prepare<[string], Account>("SELECT id, name FROM account WHERE name = ?");
  const insertAccount = db.prepare("INSERT INTO account (id, name) VALUES (?, ?)");
  const insertCollection = db.prepare("INSERT INTO collection (id, account_id, tier) VALUES (?, ?, ?)");
  const upsertKey = db.prepare(`
    INSERT INTO api_key (sha256, account_id, name, scopes, created_at, expires_at)
    VALUES (@sha256, @accountId, @name, @scopes, @createdAt, @expiresAt)
    ON CONFLICT (sha256) DO UPDATE SET name = excluded.name, scopes = excluded.scopes, expires_at = excluded.expires_at`);
  const insertFile = db.prepare(`
    INSERT INTO stored_file (token, account_id, name, media_type, size_bytes, sha256, created_at)
    VALUES (@token, @accountId, @name, @mediaType, @sizeBytes, @sha256, @createdAt)`);
  const upsertAnswer = db.prepare(`
    INSERT INTO kept_answer (account_id, key, body_sha256, status, body, kept_ms)
    VALUES (@accountId, @key, @bodySha256, @status, @body, @nowMs)
    ON CONFLICT (account_id, key) DO UPDATE SET body_sha256 = excluded.body_sha256, status = excluded.status,
      body = excluded.body, kept_ms = excluded.kept_ms
    WHERE kept_answer.kept_ms <= @nowMs - ${ANSWER_KEPT_MS}`);
  const collectOld = db.prepare(`
    DELETE FROM kept_answer WHERE number IN (
      SELECT number FROM kept_answer WHERE kept_ms <= ? ORDER BY kept_ms LIMIT ${COLLECTED_MAX})`);
  const collectMany = db.prepare(`
    DELETE FROM kept_answer WHERE number IN (
      SELECT number FROM kept_answer WHERE number <= ? ORDER BY number LIMIT ${COLLECTED_MAX})`);

  return {
    ensureAccount(name, ids) {
      const found = selectAccount.get(name);
      if (found !== undefined) return found;
      const [id = "", ...collections] = ids;
      insertAccount.run(id, name);
      for (const [at, tier] of Tier.options.entries()) insertCollection.run(collections[at], id, tier);
      return { id, name };
    },
    putKey: (key) => {
      upsertKey.run({ ...key, scopes: JSON.stringify(key.scopes) });
    },
    addFile: (file) => {
      insertFile.run(file);
    },
    remember(accountId, key, answer, nowMs) {
      collectOld.run(nowMs - ANSWER_KEPT_MS);
      const { lastInsertRowid } = upsertAnswer.run({ ...answer, accountId, key, nowMs });
      // Numbers ascend with time, so those that lie further back than the bound are too many.
      collectMany.run(Number(lastInsertRowid) - ANSWERS_MAX);
    },
  };
}

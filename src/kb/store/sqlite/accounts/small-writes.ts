import type { Account, StoredFile } from "../../records.ts";
import { Tier } from "../../../../wire/primitives.ts";
import type { Connection } from "../database/connection.ts";

/** Writes of accounts and files. Each runs inside a transaction of the caller. */
export interface SmallWrites {
  /** Returns the account of that name, or creates it; `ids` are for a new account and its collections. */
  ensureAccount(name: string, ids: readonly string[]): Account;
  addFile(file: StoredFile): void;
}

/** Prepares the statements on the writing connection. */
export function prepareSmallWrites(db: Connection): SmallWrites {
  const selectAccount = db.prepare<[string], Account>("SELECT id, name FROM account WHERE name = ?");
  const insertAccount = db.prepare("INSERT INTO account (id, name) VALUES (?, ?)");
  const insertCollection = db.prepare("INSERT INTO collection (id, account_id, tier) VALUES (?, ?, ?)");
  const insertFile = db.prepare(`
    INSERT INTO stored_file (token, account_id, name, media_type, declared_type, size_bytes, sha256, created_at)
    VALUES (@token, @accountId, @name, @mediaType, @declaredType, @sizeBytes, @sha256, @createdAt)`);

  return {
    ensureAccount(name, ids) {
      const found = selectAccount.get(name);
      if (found !== undefined) return found;
      const [id = "", ...collections] = ids;
      insertAccount.run(id, name);
      for (const [at, tier] of Tier.options.entries()) insertCollection.run(collections[at], id, tier);
      return { id, name };
    },
    addFile: (file) => {
      insertFile.run({ ...file, declaredType: file.declaredType ?? null });
    },
  };
}

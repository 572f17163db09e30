import { codeOf } from "../../lib/failure.ts";

/** Advice on a damaged store; part of answers, logs and the error of a failed start. */
export const DAMAGE_HINT =
  "`kbsync doctor` reports what is damaged, `kbsync restore` replaces the store by a backup; the store was left as it is.";

/** The same of a database. */
export const DATABASE_DAMAGE_HINT =
  "The log of PostgreSQL names the table and the block. Restore the database from a copy; what changed since then is sent again.";

/** A part of the index that differs from what was written: it is rebuilt from the stored texts (`Rebuilds`). */
export const INDEX_DAMAGE = {
  what: "a part of the search index is damaged, and is being rebuilt from the stored texts",
  code: "index_damaged",
  retryable: true,
} as const;

/** Reports whether an error means that the store file is damaged: a KbsyncError, or an error of SQLite itself. */
export function isDamage(error: unknown): boolean {
  const code = codeOf(error) ?? "";
  return code === "store_damaged" || code === "SQLITE_NOTADB" || code.startsWith("SQLITE_CORRUPT");
}

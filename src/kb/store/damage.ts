import { codeOf } from "../../lib/failure.ts";

/** Advice on a damaged store; part of answers, logs and the error of a failed start. */
export const DAMAGE_HINT =
  "`kbsync doctor` reports what is damaged, `kbsync restore` replaces the store by a backup; the store was left as it is.";

/** The same of a database: its processes make a damaged index again from the documents. */
export const DATABASE_DAMAGE_HINT =
  "The services check the database and repair its index of words; `kbsync doctor` reports what they found, and what is left to do.";

/** Reports whether an error means that the store file is damaged: a KbsyncError, or an error of SQLite itself. */
export function isDamage(error: unknown): boolean {
  const code = codeOf(error) ?? "";
  return code === "store_damaged" || code === "SQLITE_NOTADB" || code.startsWith("SQLITE_CORRUPT");
}

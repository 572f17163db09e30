import { openContacts } from "./contacts.ts";
import { openSqlite } from "./database/open.ts";

/** A retained text that a ledger knows. */
export interface KnownText {
  readonly name: string;
  /** SHA-256 of the file, 64 hex digits. */
  readonly sha256: string;
}

/** Returns the retained texts of deleted files that a copy of a ledger knows. Throws whatever opening throws. */
export function knownTexts(ledger: string): readonly KnownText[] {
  const db = openSqlite(ledger, { readonly: true });
  try {
    return db.prepare<[], KnownText>("SELECT name, hash AS sha256 FROM trash ORDER BY name").all();
  } finally {
    db.close();
  }
}

/**
 * Marks a restored ledger as old. Its rows are compared with the service's list before anything is sent, so that
 * resources made after the backup are adopted and not created twice. The file is self-contained afterwards.
 */
export function distrustRestored(ledger: string): void {
  const db = openSqlite(ledger);
  try {
    openContacts(db).distrust(null);
    db.pragma("journal_mode = DELETE");
  } finally {
    db.close();
  }
}

/** Upgrades a ledger file that nothing else uses to this program's tables. Throws whatever opening throws. */
export function upgradeLedger(file: string): void {
  openSqlite(file).close();
}

import { openDrift } from "./drift.ts";
import { openSqlite } from "./open.ts";

/** A kept text that a ledger knows. */
export interface KnownText {
  readonly name: string;
  /** SHA-256 of the file, 64 hex digits. */
  readonly sha256: string;
}

/** The kept texts of deleted files that a copy of a ledger knows. Throws what opening throws. */
export function knownTexts(ledger: string): readonly KnownText[] {
  const db = openSqlite(ledger, { readonly: true });
  try {
    return db.prepare<[], KnownText>("SELECT name, hash AS sha256 FROM trash ORDER BY name").all();
  } finally {
    db.close();
  }
}

/**
 * Notes in a restored ledger that it is an old one: its rows are compared with the service's list before anything is sent,
 * so that what was made after the backup is adopted and not made twice. The file is complete in itself afterwards.
 */
export function distrustRestored(ledger: string, nowMs: number): void {
  const db = openSqlite(ledger);
  try {
    openDrift(db).distrustAll(nowMs);
    db.pragma("journal_mode = DELETE");
  } finally {
    db.close();
  }
}

/** Brings a ledger file that nothing else uses up to the tables of this program. Throws what opening throws. */
export function upgradeLedger(file: string): void {
  openSqlite(file).close();
}

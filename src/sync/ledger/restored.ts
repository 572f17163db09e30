import { existsSync, renameSync } from "node:fs";
import { codeOf } from "../../lib/failure.ts";
import { lockFolder, stateUnusable } from "../../lib/folder-lock.ts";
import { openContacts } from "./contacts.ts";
import { openSqlite } from "./database/open.ts";
import { ledgerFile } from "./ledger.ts";

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

/**
 * Prepares a state folder whose ledger is damaged, from before the first release, or older than it seems: the next pass compares
 * its sources with the service's list before it sends anything. Renames a ledger that cannot be used and returns its new
 * path; undefined for a sound one, or none.
 */
export function distrustLedger(stateDir: string, nowMs: number): string | undefined {
  const file = ledgerFile(stateDir);
  const lock = lockFolder(stateDir, "daemon");
  try {
    if (!existsSync(file)) return undefined;
    if (isUsable(file)) {
      distrustRestored(file);
      return undefined;
    }
    const renamed = `${file}.set-aside-${new Date(nowMs).toISOString().replaceAll(/[:.]/g, "-")}`;
    try {
      // The log goes first: if it stayed, the new ledger would take it for its own. SQLite finds it under the new name.
      for (const part of ["-wal", "-shm", ""]) {
        if (existsSync(`${file}${part}`)) renameSync(`${file}${part}`, `${renamed}${part}`);
      }
    } catch (error) {
      throw stateUnusable(file, error);
    }
    return renamed;
  } finally {
    lock.release();
  }
}

/** Reports whether a ledger has this program's tables and no damage. Throws every other failure. */
function isUsable(file: string): boolean {
  try {
    const db = openSqlite(file);
    try {
      return db.pragma("quick_check(1)", { simple: true }) === "ok";
    } finally {
      db.close();
    }
  } catch (error) {
    const code = codeOf(error);
    if (code === "ledger_damaged" || code === "ledger_older" || code?.startsWith("SQLITE_CORRUPT") === true)
      return false;
    throw error;
  }
}

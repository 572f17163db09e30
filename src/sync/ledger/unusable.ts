import { existsSync, renameSync } from "node:fs";
import { codeOf } from "../../lib/failure.ts";
import { lockFolder, stateUnusable } from "../../lib/folder-lock.ts";
import { ledgerFile } from "./ledger.ts";
import { distrustRestored } from "./restored.ts";
import { openSqlite } from "./database/open.ts";

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
    const renamed = unusableName(file, nowMs);
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

/** Returns the new path of a ledger that cannot be used. */
function unusableName(file: string, nowMs: number): string {
  const stamp = new Date(nowMs).toISOString().replaceAll(/[:.]/g, "-");
  return `${file}.set-aside-${stamp}`;
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

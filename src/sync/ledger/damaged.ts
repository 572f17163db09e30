import { existsSync, renameSync } from "node:fs";
import { codeOf } from "../../lib/failure.ts";
import { lockFolder, stateUnusable } from "../../lib/folder-lock.ts";
import { ledgerFile } from "./ledger.ts";
import { openSqlite } from "./open.ts";

/** Puts a damaged ledger aside; returns where, or undefined for a sound one. */
export function setAsideDamaged(stateDir: string, nowMs: number): string | undefined {
  const file = ledgerFile(stateDir);
  const lock = lockFolder(stateDir, "daemon");
  try {
    if (!existsSync(file) || isSound(file)) return undefined;
    const aside = asideName(file, nowMs);
    try {
      // The log goes first: left alone, it would be taken for that of the new ledger. Under the new name SQLite finds it.
      for (const part of ["-wal", "-shm", ""]) {
        if (existsSync(`${file}${part}`)) renameSync(`${file}${part}`, `${aside}${part}`);
      }
    } catch (error) {
      throw stateUnusable(file, error);
    }
    return aside;
  } finally {
    lock.release();
  }
}

/** The name under which a damaged ledger is kept. */
export function asideName(file: string, nowMs: number): string {
  const stamp = new Date(nowMs).toISOString().replaceAll(/[:.]/g, "-");
  return `${file}.damaged-${stamp}`;
}

/** Copies the ledger as it is now, beside whoever writes it; none is copied of a damaged one, which is told by `true`. */
export function copyLedger(stateDir: string, to: string): boolean {
  const file = ledgerFile(stateDir);
  if (!existsSync(file)) return false;
  const lock = lockFolder(stateDir, "daemon");
  try {
    if (!isSound(file)) return true;
    const db = openSqlite(file);
    try {
      db.prepare("VACUUM INTO ?").run(ledgerFile(to));
    } finally {
      db.close();
    }
    return false;
  } finally {
    lock.release();
  }
}

/** Whether every page of a ledger can be read and says what it should. Throws what is no damage. */
function isSound(file: string): boolean {
  try {
    const db = openSqlite(file);
    try {
      return db.pragma("quick_check(1)", { simple: true }) === "ok";
    } finally {
      db.close();
    }
  } catch (error) {
    if (codeOf(error) === "ledger_damaged" || codeOf(error)?.startsWith("SQLITE_CORRUPT") === true)
      return false;
    throw error;
  }
}

import { existsSync } from "node:fs";
import { lockFolder } from "../../lib/folder-lock.ts";
import { shortageAt } from "../../lib/full-disk.ts";
import { isLedgerFailure, ledgerFailure, openSqlite, type Sqlite } from "../ledger/database/open.ts";
import { ledgerFile, type LedgerTables, openTables } from "../ledger/ledger.ts";
import type { GroupCommit } from "../ledger/commit.ts";

/** The part of a ledger that a person's commands read and change, with or without a running daemon. */
export type OperatorLedger = LedgerTables & Pick<GroupCommit, "flush" | "write">;

/**
 * Changes the ledger of a state folder that no daemon uses. Undefined: there is no ledger yet. Throws `state_locked` while a
 * daemon uses it, `disk_full`, `ledger_unusable`.
 */
export async function changeLedger<T>(
  stateDir: string,
  change: (ledger: OperatorLedger) => Promise<T>,
): Promise<T | undefined> {
  const file = ledgerFile(stateDir);
  if (!existsSync(file)) return undefined;
  const lock = lockFolder(stateDir, "daemon");
  try {
    const db = openSqlite(file);
    try {
      return await change(ledgerOf(db));
    } catch (error) {
      throw isLedgerFailure(error) ? ledgerFailure(error, file) : error;
    } finally {
      db.close();
    }
  } finally {
    lock.release();
  }
}

/**
 * Reads the ledger of a state folder; a daemon may be running. Undefined: there is no ledger yet. Throws
 * `ledger_unreachable`, `ledger_unusable`.
 */
export async function readLedger<T>(
  stateDir: string,
  read: (ledger: OperatorLedger) => Promise<T>,
): Promise<T | undefined> {
  const open = openForReading(stateDir);
  try {
    return open && (await read(open.ledger));
  } catch (error) {
    throw isLedgerFailure(error) ? ledgerFailure(error, ledgerFile(stateDir)) : error;
  } finally {
    open?.close();
  }
}

/** Opens the ledger of a state folder for reading; a daemon may be running. Undefined: there is no ledger yet. */
export function openForReading(
  stateDir: string,
): { readonly ledger: OperatorLedger; close(): void } | undefined {
  const file = ledgerFile(stateDir);
  if (!existsSync(file)) return undefined;
  const db = openSqlite(file, { readonly: true });
  return { ledger: ledgerOf(db), close: () => void db.close() };
}

/**
 * Copies the ledger of a state folder into another one; a daemon may be running. Copies nothing if there is no ledger yet.
 * Throws as `readLedger` does.
 */
export function copyLedger(stateDir: string, to: string): void {
  const file = ledgerFile(stateDir);
  if (!existsSync(file)) return;
  const copy = ledgerFile(to);
  const db = openSqlite(file, { readonly: true });
  try {
    db.prepare("VACUUM INTO ?").run(copy);
  } catch (error) {
    // Only the copy is written.
    const failed = shortageAt(copy, error) === undefined ? file : copy;
    throw isLedgerFailure(error) ? ledgerFailure(error, failed) : error;
  } finally {
    db.close();
  }
}

function ledgerOf(db: Sqlite): OperatorLedger {
  return {
    ...openTables(db),
    flush: () => undefined,
    // Closing the ledger flushes it to disk.
    write: async (change) => db.transaction(change).immediate(),
  };
}

import { existsSync } from "node:fs";
import { lockFolder } from "../../lib/folder-lock.ts";
import { openActivity } from "../ledger/activity.ts";
import { openContacts } from "../ledger/contacts.ts";
import { openErasures } from "../ledger/erasures.ts";
import { openFiles } from "../ledger/files/files.ts";
import { ledgerFile, type Ledger } from "../ledger/ledger.ts";
import { isLedgerFailure, ledgerFailure, openSqlite, type Sqlite } from "../ledger/database/open.ts";
import { openIntents } from "../ledger/intents/intents.ts";
import { openOperator } from "../ledger/operator.ts";
import { openSources } from "../ledger/sources/sources.ts";
import { openTrashRows } from "../ledger/trash.ts";

/** The part of a ledger that a person's commands read and change, with or without a running daemon. */
export type OperatorLedger = Pick<
  Ledger,
  | "activity"
  | "contacts"
  | "erasures"
  | "files"
  | "flush"
  | "intents"
  | "operator"
  | "sources"
  | "trash"
  | "write"
>;

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

function ledgerOf(db: Sqlite): OperatorLedger {
  return {
    activity: openActivity(db),
    contacts: openContacts(db),
    files: openFiles(db),
    intents: openIntents(db),
    operator: openOperator(db),
    sources: openSources(db),
    trash: openTrashRows(db),
    erasures: openErasures(db),
    flush: () => undefined,
    // Closing the ledger flushes it to disk.
    write: async (change) => db.transaction(change).immediate(),
  };
}

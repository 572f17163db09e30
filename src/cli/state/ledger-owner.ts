import { existsSync } from "node:fs";
import { ledgerFile } from "../../sync/ledger/ledger.ts";
import { openSqlite } from "../../sync/ledger/database/open.ts";

/**
 * Hands the ledger of a state folder from one service to another one that has the same documents under the same ids. Leaves the ledger
 * of a third service as it is. Returns whether the ledger belongs to the new one. The folder must be locked.
 */
export function handLedgerOver(stateDir: string, from: string, to: string): boolean {
  const file = ledgerFile(stateDir);
  if (!existsSync(file)) return false;
  const db = openSqlite(file);
  try {
    db.prepare("UPDATE meta SET value = ? WHERE name = 'service' AND value = ?").run(to, from);
    return db.prepare<[], string>("SELECT value FROM meta WHERE name = 'service'").pluck().get() === to;
  } finally {
    db.close();
  }
}

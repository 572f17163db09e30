import { existsSync } from "node:fs";
import { lockFolder } from "../lib/folder-lock.ts";
import { ledgerFile } from "./ledger/ledger.ts";
import { openSqlite } from "./ledger/open.ts";
import { openSources } from "./ledger/sources.ts";

/** What a person agreed to. */
export interface Approval {
  readonly source: string;
  /** Deletes that were held. A source that stands still as a whole has none, and goes on all the same. */
  readonly held: number;
  readonly reason: string;
}

/**
 * Notes in the ledger that a person agrees to the deletes that are held, and to the folders as they are now; the next
 * pass does them. `path` is a source's folder, undefined all of them. Returns what was agreed to, which is nothing
 * where nothing is held. Throws `state_locked` while a daemon works on the state folder.
 */
export function approveHeld(stateDir: string, path: string | undefined): Approval[] {
  if (!existsSync(ledgerFile(stateDir))) return [];
  const lock = lockFolder(stateDir, "daemon");
  try {
    const db = openSqlite(ledgerFile(stateDir));
    try {
      const sources = openSources(db);
      const approvals: Approval[] = [];
      db.transaction(() => {
        for (const row of sources.active()) {
          const reason = row.halted ?? row.holdReason;
          if (reason === null || (path !== undefined && row.path !== path)) continue;
          sources.approve(row.id);
          approvals.push({ source: row.path, held: row.held, reason });
        }
      }).immediate();
      return approvals;
    } finally {
      db.close();
    }
  } finally {
    lock.release();
  }
}

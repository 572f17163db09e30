import { existsSync } from "node:fs";
import { parentPort } from "node:worker_threads";
import { shortageAt } from "../../lib/full-disk.ts";
import { answerCalls } from "../../lib/worker-calls.ts";
import { isLedgerFailure, ledgerFailure, openSqlite } from "../ledger/database/open.ts";
import { ledgerFile } from "../ledger/ledger.ts";

/** The calls of the worker that copies ledgers. */
export interface CopyMethods extends Record<string, (argument: never) => unknown> {
  copy: (folders: CopyFolders) => void;
}

/** The state folder to copy from, and the one to copy to. */
export interface CopyFolders {
  readonly stateDir: string;
  readonly to: string;
}

if (parentPort === null) throw new Error("copy-worker.ts runs only as a worker thread");

answerCalls(parentPort, {
  copy: ({ stateDir, to }) => {
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
  },
} satisfies CopyMethods);

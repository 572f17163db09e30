import { KbsyncError } from "../../../../lib/failure.ts";
import type { Transaction } from "./connections.ts";

/** Reports whether a database has a copy of another store that is not complete (`kb/store/move`). */
export async function isUnfinished(tx: Transaction): Promise<boolean> {
  const found = await tx.get<{ readonly found: boolean }>(
    "SELECT to_regclass('unfinished_move') IS NOT NULL AS found",
  );
  return found?.found === true;
}

/** Throws `store_unfinished` for such a database, whose name the message contains. */
export async function refuseUnfinished(tx: Transaction, name: string): Promise<void> {
  if (!(await isUnfinished(tx))) return;
  throw new KbsyncError(`the database ${name} has an unfinished copy of another store`, {
    code: "store_unfinished",
    subject: name,
    hint: "To finish it, run `kbsync move --to` again. To start over, empty the database first.",
  });
}

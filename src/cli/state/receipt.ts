import { KbsyncError } from "../../lib/failure.ts";
import type { AskLedger } from "../../mcp/receipt.ts";
import { askDaemon } from "../../sync/control/client.ts";
import { readLedger } from "../../sync/operator/offline.ts";
import { ledgerReceipt } from "../../sync/operator/receipt.ts";

/**
 * Asks the daemon of a state folder how fresh answers are; without one, its ledger. Undefined: there is no ledger that can be read.
 * Only a question that waits fails when the daemon cannot be asked.
 */
export function ledgerOf(stateDir: string): AskLedger {
  return async (request, signal) => {
    try {
      const live = await askDaemon(stateDir, "receipt", request, { signal });
      if (live !== undefined) return live;
    } catch (error) {
      // The daemon has another version, or is ending.
      if (request.waitSeconds !== undefined || !isOfControl(error)) throw error;
    }
    return readLedger(stateDir, async (ledger) => ledgerReceipt(ledger, request)).catch(ifUnreadable);
  };
}

function isOfControl(error: unknown): boolean {
  return error instanceof KbsyncError && error.code.startsWith("control_");
}

/** The service's answer does not need the ledger; the receipt then names no folder. */
function ifUnreadable(error: unknown): undefined {
  if (error instanceof KbsyncError && error.code.startsWith("ledger_")) return undefined;
  throw error;
}

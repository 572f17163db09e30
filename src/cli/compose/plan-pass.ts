import { rmSync } from "node:fs";
import type { Daemon } from "../../sync/daemon.ts";
import { copyLedger } from "../../sync/operate/offline.ts";
import { makePlanCopy, removePlanCopies } from "../state/plan-copies.ts";
import { type StateFolder, stateFolder } from "../state/state-folder.ts";

/**
 * Opens a daemon on a copy of a ledger that another daemon uses, to plan a pass. Its `close` removes the copy; the next plan and the
 * next start of the daemon remove a copy whose process was killed.
 */
export function openOnCopy(
  state: StateFolder,
  open: (state: StateFolder) => Daemon,
): { readonly daemon: Daemon; readonly close: () => Promise<void> } {
  // The start of the daemon reports copies that cannot be removed; a plan does not need that.
  removePlanCopies(state, { own: true });
  const copy = makePlanCopy(state);
  const discard = (): void => rmSync(copy, { recursive: true, force: true });
  try {
    copyLedger(state.path, copy);
    const daemon = open(stateFolder(copy));
    return { daemon, close: async () => daemon.close().finally(discard) };
  } catch (error) {
    discard();
    throw error;
  }
}

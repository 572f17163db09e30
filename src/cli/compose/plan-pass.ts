import { rmSync } from "node:fs";
import type { Config } from "../../config/load.ts";
import { KbsyncError } from "../../lib/failure.ts";
import type { DaemonProgram } from "../../sync/control/operations.ts";
import type { Daemon, PassResult } from "../../sync/daemon.ts";
import { copyLiveLedger } from "../../sync/operator/copy-ledger.ts";
import { type Estimate, estimateOf } from "../output/estimate.ts";
import { makePlanCopy, removePlanCopies } from "../state/plan-copies.ts";
import { type StateFolder, stateFolder } from "../state/state-folder.ts";

/** The actions of a pass, in no order. */
export type Planned = NonNullable<PassResult["planned"]>;

/**
 * Opens a daemon on a copy of a ledger that another daemon uses, to plan a pass. Its `close` removes the copy; the next plan and the
 * next start of the daemon remove a copy whose process was killed.
 */
export async function openOnCopy(
  state: StateFolder,
  open: (state: StateFolder) => Daemon,
): Promise<{ readonly daemon: Daemon; readonly close: () => Promise<void> }> {
  // The start of the daemon reports copies that cannot be removed; a plan does not need that.
  removePlanCopies(state, { own: true });
  const copy = makePlanCopy(state);
  const discard = (): void => rmSync(copy, { recursive: true, force: true });
  try {
    await copyLiveLedger({ stateDir: state.path, to: copy });
    const daemon = open(stateFolder(copy));
    return { daemon, close: async () => daemon.close().finally(discard) };
  } catch (error) {
    discard();
    throw error;
  }
}

/** Sums up what a plan would send, at the configured price of embedding. */
export function planEstimate({ service, kb, sources }: Config, planned: Planned): Estimate {
  const price = "embedded" in service ? kb.embedding.price : service.price;
  const wordsOnly = new Set(
    sources.filter(({ collection }) => collection === "fastest").map(({ absolutePath }) => absolutePath),
  );
  return estimateOf(planned, price, (source) => !wordsOnly.has(source));
}

/**
 * Plans passes while the daemon runs, as `kbsync sync --dry-run` does: on a copy of its ledger. Plans one at a time, because a
 * plan reads every file that it would send.
 */
export function openPlanning(
  state: StateFolder,
  config: () => Config,
  open: (state: StateFolder) => Daemon,
): DaemonProgram["plan"] {
  let isPlanning = false;
  return async ({ limit }, signal) => {
    if (isPlanning) {
      throw new KbsyncError("a pass is being planned already", {
        code: "plan_busy",
        retryable: true,
        hint: "Try again when that has answered.",
      });
    }
    isPlanning = true;
    try {
      const { daemon, close } = await openOnCopy(state, open);
      try {
        const { planned = [] } = await daemon.syncOnce({ dryRun: true, signal });
        const counts: Record<string, number> = {};
        for (const { action } of planned) counts[action] = (counts[action] ?? 0) + 1;
        const key = ({ path, source }: Planned[number]): string => `${path}\0${source}`;
        const sorted = planned.toSorted((a, b) => (key(a) < key(b) ? -1 : Number(key(a) > key(b))));
        return { planned: sorted.slice(0, limit), counts, estimate: planEstimate(config(), planned) };
      } finally {
        await close();
      }
    } finally {
      isPlanning = false;
    }
  };
}

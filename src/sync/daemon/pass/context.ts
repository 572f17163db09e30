import type { SyncConfig } from "../../../config/schema/sync.ts";
import type { ActionContext, ActionSource } from "../../send/context.ts";
import type { BusyPaths } from "../agenda/jobs.ts";
import type { Agenda } from "../agenda/agenda.ts";
import type { ScanOptions } from "../../scan/scan.ts";

/** The source of passes, and what they work with. */
export interface PassContext {
  readonly source: Pick<ActionSource, "id" | "root" | "rules" | "rulesKey">;
  readonly context: Pick<ActionContext, "ledger" | "now" | "moved" | "report" | "trash" | "timing">;
  readonly sync: SyncConfig;
  /** One pass: a scan is the truth and no event may follow, so nothing waits. */
  readonly once: boolean;
  readonly agenda: Agenda;
  readonly signal: AbortSignal;
}

/** Above this number of paths, a scan of the whole source is cheaper. */
export const PATHS_MAX = 20_000;

/** Returns the options of a scan for a pass. `judgesMounts`: its caller compares by `compareJudged`. */
export function scanOptions({ signal, context }: PassContext, judgesMounts = false): ScanOptions {
  return { signal, onSlice: context.moved, judgesMounts };
}

/** Runs with one snapshot of what is in flight, so that what is decided by it also begins by it. */
export async function withBusy<T>(
  agenda: Pick<Agenda, "busyPaths">,
  run: (busy: BusyPaths) => Promise<T>,
): Promise<T> {
  const busy = agenda.busyPaths();
  try {
    return await run(busy);
  } finally {
    busy.close();
  }
}

import type { ActionContext, ActionSource } from "../actions/context.ts";
import type { BusyPaths } from "../agenda/jobs.ts";
import type { PathStates } from "../agenda/path-states.ts";
import type { Difference, RelativePath, Scan } from "../plan/model.ts";
import { holdsKnownFiles } from "../plan/mounts.ts";
import { reconcileInSteps } from "../plan/reconcile.ts";
import { scopeTest } from "../plan/scope.ts";
import { MOUNTED_OVER } from "../rules/sub-mounts.ts";
import { withoutMounts } from "../scan/scan.ts";
import { inSlices } from "./slices.ts";

/** The differences between a scan and the ledger's rows. */
export interface Compared extends Difference {
  /** Number of files without a row that are in flight and no longer exist. */
  readonly missingNew: number;
}

/** Compares scans of a source with its rows in the ledger. */
export interface Comparison {
  /**
   * `busy` is older than the comparison: otherwise a row acknowledged meanwhile would count as one whose file was not
   * seen. `allParked`: parked files are candidates, whether they are due or not.
   */
  compare(scan: Scan, busy: BusyPaths, allParked: boolean): Promise<Compared>;
  /** The same after deciding whether new mounts hold the files that the ledger knows there. */
  compareJudged(
    scan: Scan,
    busy: BusyPaths,
    allParked: boolean,
  ): Promise<{ readonly scan: Scan; readonly difference: Compared }>;
}

/** Opens the comparison of a source. */
export function openComparison({
  source,
  context: { ledger, moved },
  states,
  signal,
}: {
  readonly source: Pick<ActionSource, "id" | "rules" | "rulesKey" | "checkAgain">;
  readonly context: Pick<ActionContext, "ledger" | "moved">;
  readonly states: Pick<PathStates, "isDue">;
  readonly signal: AbortSignal;
}): Comparison {
  const { id, rules, rulesKey } = source;

  const compare: Comparison["compare"] = async (scan, busy, allParked) => {
    ledger.flush();
    const known = scan.scope === undefined ? ledger.files.all(id) : ledger.files.below(id, scan.scope);
    // A file whose time came while it could not be checked has no time any more. A whole pass tries it.
    const retryParked = allParked || ((path: RelativePath) => !states.isDue(path));
    const options = { rulesKey, retryParked, busy: (path: RelativePath) => busy.has(path) };
    const difference = await inSlices(reconcileInSteps(scan, known, options), signal, moved);
    // Files in flight are skipped, and nothing else may have reported that they have changed since.
    const changed = await inSlices(busy.changed(difference.uncompared, scopeTest(scan.scope)), signal, moved);
    for (const path of changed) source.checkAgain(path);
    const there = new Set(difference.uncompared.map(({ path }) => path));
    const missing = changed.filter((path) => !there.has(path)).length;
    const withRow = difference.missingBusy + difference.renamedBusy;
    return { ...difference, missingNew: Math.max(0, missing - withRow) };
  };

  return {
    compare,
    compareJudged: async (scan, busy, allParked) => {
      const unjudged = rules.mounts?.unjudged() ?? [];
      if (unjudged.length === 0) return { scan, difference: await compare(scan, busy, allParked) };
      const entries = new Map(scan.entries.map((entry) => [entry.path, entry]));
      const refused = unjudged.filter(
        (path) => !holdsKnownFiles(ledger.files.below(id, [path]), (at) => entries.get(at)),
      );
      for (const path of unjudged) rules.mounts?.judge(path, !refused.includes(path));
      const open = withoutMounts(
        scan,
        refused.map((path) => ({ path, code: MOUNTED_OVER })),
      );
      return { scan: open, difference: await compare(open, busy, allParked) };
    },
  };
}

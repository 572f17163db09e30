import type { BusyPaths } from "../agenda/jobs.ts";
import type { Difference, RelativePath, Scan } from "../plan/model.ts";
import { holdsKnownFiles } from "../plan/mounts.ts";
import { reconcileInSteps } from "../plan/reconcile.ts";
import { scopeTest } from "../plan/scope.ts";
import { MOUNTED_OVER } from "../rules/sub-mounts.ts";
import { withoutMounts } from "../scan/scan.ts";
import type { PassContext } from "./context.ts";
import { inSlices } from "./slices.ts";

/**
 * Compares a scan with the source's rows in the ledger. `busy` is older than the comparison: otherwise a row acknowledged
 * meanwhile would count as one whose file was not seen. `allParked`: parked files are candidates, whether they are due or
 * not.
 */
export async function compareWithLedger(
  { source, context: { ledger, moved }, states, signal }: PassContext,
  scan: Scan,
  busy: BusyPaths,
  allParked: boolean,
): Promise<Difference> {
  const { id, rulesKey } = source;
  ledger.flush();
  const known = scan.scope === undefined ? ledger.files.all(id) : ledger.files.below(id, scan.scope);
  // A file whose time came while it could not be checked has no time any more. A whole pass tries it.
  const retryParked = allParked || ((path: RelativePath) => !states.isDue(path));
  const options = { rulesKey, retryParked, busy: (path: RelativePath) => busy.has(path) };
  const difference = await inSlices(reconcileInSteps(scan, known, options), signal, moved);
  // Files in flight are skipped, and nothing else may have reported that they have changed since.
  const changed = await inSlices(busy.changed(difference.uncompared, scopeTest(scan.scope)), signal, moved);
  for (const path of changed) source.agenda.checkAgain(path);
  return difference;
}

/** The same after deciding whether new mounts hold the files that the ledger knows there. */
export async function compareJudged(
  pass: PassContext,
  scan: Scan,
  busy: BusyPaths,
  allParked: boolean,
): Promise<{ readonly scan: Scan; readonly difference: Difference }> {
  const { id, rules } = pass.source;
  const { ledger } = pass.context;
  const unjudged = rules.mounts?.unjudged() ?? [];
  if (unjudged.length === 0)
    return { scan, difference: await compareWithLedger(pass, scan, busy, allParked) };
  const entries = new Map(scan.entries.map((entry) => [entry.path, entry]));
  const refused = unjudged.filter(
    (path) => !holdsKnownFiles(ledger.files.below(id, [path]), (at) => entries.get(at)),
  );
  for (const path of unjudged) rules.mounts?.judge(path, !refused.includes(path));
  const open = withoutMounts(
    scan,
    refused.map((path) => ({ path, code: MOUNTED_OVER })),
  );
  return { scan: open, difference: await compareWithLedger(pass, open, busy, allParked) };
}

import { inSlices } from "../../../lib/steps.ts";
import type { BusyPaths } from "../agenda/jobs.ts";
import type { Difference, KnownFile, RelativePath, Scan, ScanEntry } from "../../plan/model.ts";
import { reconcileInSteps } from "../../plan/reconcile.ts";
import { scopeTest } from "../../plan/scope.ts";
import { MOUNTED_OVER } from "../../scan/rules/sub-mounts.ts";
import { withoutMounts } from "../../scan/scan.ts";
import type { PassContext } from "./context.ts";

/**
 * Compares a scan with the source's rows in the ledger. `busy` is older than the comparison: otherwise a row acknowledged
 * meanwhile would count as one whose file was not seen. `allParked`: parked files are candidates, whether they are due or
 * not.
 */
export async function compareWithLedger(
  { source, context: { ledger, moved }, agenda, signal }: PassContext,
  scan: Scan,
  busy: BusyPaths,
  allParked: boolean,
): Promise<Difference> {
  const { id, rulesKey } = source;
  ledger.flush();
  const known = scan.scope === undefined ? ledger.files.all(id) : ledger.files.below(id, scan.scope);
  // A file whose time came while it could not be checked has no time any more. A whole pass tries it.
  const retryParked = allParked || ((path: RelativePath) => !agenda.isDue(path));
  const options = { rulesKey, retryParked, busy: (path: RelativePath) => busy.has(path) };
  const difference = await inSlices(reconcileInSteps(scan, known, options), signal, moved);
  // Files in flight are skipped, and nothing else may have reported that they have changed since.
  const changed = await inSlices(busy.changed(difference.uncompared, scopeTest(scan.scope)), signal, moved);
  for (const path of changed) agenda.checkAgain(path);
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

/**
 * Reports whether the files below a mount are those that the ledger knows there, and not others that hide them: each
 * has a file at its path, or most are the very same. Pure. `rows` are all rows below the mount's path.
 */
export function holdsKnownFiles(
  rows: Iterable<KnownFile>,
  entryAt: (path: RelativePath) => Pick<ScanEntry, "ino"> | undefined,
): boolean {
  let known = 0;
  let there = 0;
  let same = 0;
  for (const { path, ino, state, docId } of rows) {
    if (docId === null || state === "held" || state === "doomed") continue;
    const entry = entryAt(path);
    known += 1;
    there += Number(entry !== undefined);
    same += Number(entry?.ino === ino);
  }
  return there === known || 2 * same >= known;
}

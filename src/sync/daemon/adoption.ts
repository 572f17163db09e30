import { adoptSource, type AdoptReport } from "../adopt/adopt-source.ts";
import type { Parts } from "./parts.ts";
import type { DaemonSources } from "./sources.ts";
import { rulesKeysOf } from "../pass/rules-key.ts";
import { NOTHING_UNSEARCHED } from "../ledger/drift/adoptions.ts";

/** Assigns to files the resources that the service has of them, source by source. See `adoptSource`. */
export async function adoptSources(
  { context, ledger }: Parts,
  sources: DaemonSources,
  signal: AbortSignal,
): Promise<readonly AdoptReport[]> {
  const reports: AdoptReport[] = [];
  for (const { id, rules } of sources.open(true)) {
    const rulesKey = rulesKeysOf(rules, () => context.capabilities.takesMetadata());
    const source = { id, root: rules.source.absolutePath, rules, rulesKey };
    // A new ledger made what it knows before it could see any list. An old one knows what no longer exists.
    const isDistrusted = ledger.drift.isDistrusted(id);
    const whole = ledger.drift.isAdopted(id) || isDistrusted;
    await ledger.write(() => {
      if (whole) ledger.drift.setUnsearched(id, NOTHING_UNSEARCHED);
      // A person says that the ledger is old, whatever the ledger records.
      if (!isDistrusted) ledger.drift.setForgottenMs(context.now());
    });
    const {
      unsearched: _parts,
      unreadable: _unreadable,
      approvedRows: _rows,
      ...report
    } = await adoptSource(context, source, {
      whole,
      signal,
    });
    reports.push(report);
  }
  await context.trash?.restore(signal);
  ledger.flush();
  return reports;
}

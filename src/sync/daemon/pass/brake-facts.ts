import { setImmediate as nextTurn } from "node:timers/promises";
import type { SourceRow } from "../../ledger/sources/rows.ts";
import type { Hold } from "../../ledger/sources/sources.ts";
import { type BrakeFacts, isSameRoot, LATELY_MS, mayHold } from "../../plan/brakes.ts";
import type { Difference, KnownFile, RelativePath, Scan } from "../../plan/model.ts";
import { scopeTest, unseenTest } from "../../plan/scope.ts";
import type { Rules } from "../../scan/rules/rules.ts";
import type { PassContext } from "./context.ts";

/** Why nothing is sent for a source; without a code, another folder halts it. */
export type RootHalt = Pick<Hold, "code" | "unit"> & { readonly reason: string | undefined };

/** Explains why a folder's root has no identity. */
export function rootless(
  { unreadable }: Pick<Scan, "unreadable">,
  { source: { unit } }: Pick<Rules, "source">,
): RootHalt {
  const error = unreadable.find(({ path }) => path === "")?.code;
  if (error !== undefined) return { code: "unreadable", reason: `the folder cannot be read: ${error}` };
  // Nothing that appears at its path is visible before that unit is restarted.
  return unit === undefined
    ? { code: "missing", reason: "the folder is missing or is not a folder" }
    : { code: "not-shown", unit, reason: `the folder is missing, or ${unit} does not show it` };
}

/** Returns the facts for the brakes that need neither rules nor activity. */
export function limitFacts(
  { source: { id, rules }, context: { ledger, now }, sync }: PassContext,
  row: SourceRow,
  { missingBusy, hidden }: Pick<Difference, "missingBusy" | "hidden">,
): BrakeFacts {
  return {
    rootBefore: row.root,
    missingBusy,
    hidden,
    unread: 0,
    filesBefore: ledger.sources.withResource(id) - row.kept,
    keeps: rules.source.deletes === "never",
    others: NONE,
    deletedLately: ledger.sources.deletedSince(id, now() - LATELY_MS),
    heldBefore: row.held,
    holdDeletesOver: sync.holdDeletesOver,
    holdDeletesPercent: sync.holdDeletesPercent,
    holdReason: row.holdReason ?? undefined,
    approval:
      row.approved && row.haltRoot !== undefined ? { root: row.haltRoot, files: row.haltFiles } : undefined,
    leftOut: NONE,
  };
}

const NONE: ReadonlySet<number> = new Set();

/** Returns the facts for the brakes, including what the rules leave out. */
export async function brakeFacts(
  pass: PassContext,
  scan: Scan,
  row: SourceRow,
  difference: Difference,
): Promise<BrakeFacts> {
  const { gone } = difference;
  const { rules } = pass.source;
  const made = madeNow(pass);
  const others = new Set(gone.filter(({ path }) => rules.isInner(path)).map(({ id }) => id));
  const limits = limitFacts(pass, row, difference);
  const facts = {
    ...limits,
    filesBefore: limits.filesBefore + made.length,
    missingBusy: limits.missingBusy + countMissing(scan, made),
    hidden: limits.hidden + made.filter(unseenTest(scan)).length,
    unread: isSameRoot(row.root, scan.root) ? 0 : pass.context.ledger.files.countUnread(pass.source.id),
    others,
  };
  return mayHold(gone, facts) ? { ...facts, leftOut: await leftOutOf(rules, gone) } : facts;
}

/**
 * Returns files whose first resource is being made. They count like those that have one: an emptied folder, or another one in the
 * place of theirs, has none of them either.
 */
function madeNow({ source: { id }, context: { ledger } }: PassContext): readonly RelativePath[] {
  ledger.flush();
  const paths = ledger.intents.creates(id).map(({ path }) => path);
  return paths.filter((path) => (ledger.files.living(id, path)?.docId ?? null) === null);
}

/** Returns how many of the paths a scan looked at and did not find. */
function countMissing(scan: Scan, paths: readonly RelativePath[]): number {
  if (paths.length === 0) return 0;
  const inScope = scopeTest(scan.scope);
  const isUnseen = unseenTest(scan);
  const found = new Set(scan.entries.map(({ path }) => path));
  for (const { path } of scan.refused) found.add(path);
  for (const { entry } of scan.skipped) found.add(entry.path);
  return paths.filter((path) => inScope(path) && !isUnseen(path) && !found.has(path)).length;
}

/** Reports whether a person's approval covers the folder as it was scanned. */
export function isAgreed({ approval }: BrakeFacts, { root }: Scan): boolean {
  return approval !== undefined && isSameRoot(approval.root, root);
}

/** Paths tested between two turns of the loop: a test takes some microseconds. */
const ASKED_AT_ONCE = 1000;

/** Returns the missing rows, by id, whose paths the rules leave out. */
async function leftOutOf(rules: Rules, gone: readonly KnownFile[]): Promise<ReadonlySet<number>> {
  const out = new Set<number>();
  for (const [index, { id, path }] of gone.entries()) {
    if (!rules.wants(path).wanted) out.add(id);
    if (index % ASKED_AT_ONCE === ASKED_AT_ONCE - 1) await nextTurn();
  }
  return out;
}

import { setTimeout } from "node:timers/promises";
import type { SourceRow } from "../ledger/sources/rows.ts";
import { brake, type Braked } from "../plan/brakes.ts";
import type { Difference, Candidate, RelativePath } from "../plan/model.ts";
import { followMoves } from "../plan/moves.ts";
import { scopeTest } from "../plan/scope.ts";
import { scanPaths, scanSource } from "../scan/scan.ts";
import type { Due } from "../agenda/checks.ts";
import { findMoves } from "./moved-files.ts";
import { type PassOptions, type PassParts, PATHS_MAX, withBusy, factsOf, rootless } from "./parts.ts";

/** The findings of a pass that has not run. */
export interface PassPreview extends Pick<Difference, "refused" | "skipped"> {
  readonly candidates: readonly Candidate[];
  readonly braked: Braked;
}

/** The work of a pass that has not run. */
export interface Unsent {
  readonly candidates: readonly Candidate[];
  /** Paths whose file is gone, and whose delete no person has to approve. */
  readonly gone: readonly RelativePath[];
  /** Reports whether a path was checked. */
  readonly inScope: (path: RelativePath) => boolean;
}

/** See `Passes.unsent`. */
export async function findUnsent(
  { source: { root, rules }, states }: PassOptions,
  { scanning, comparison }: PassParts,
  due: Due,
): Promise<Unsent> {
  const whole = due.all || due.paths.length > PATHS_MAX;
  const scan = whole
    ? await scanSource(root, rules, scanning)
    : await scanPaths(root, rules, due.paths, scanning);
  // Nothing is known about a missing folder.
  if (scan.root === undefined) return { candidates: [], gone: [], inScope: () => false };
  const found = await withBusy(states, (busy) => comparison.compare(scan, busy, true));
  const gone = found.gone.filter(({ state }) => state !== "held").map(({ path }) => path);
  return { candidates: found.candidates, gone, inScope: scopeTest(scan.scope) };
}

/** See `Passes.preview`. */
export async function previewPass(
  { source: { root, rules }, context, states, signal }: PassOptions,
  { judging, comparison, deletes, sourceFiles }: PassParts,
  before: SourceRow,
): Promise<PassPreview> {
  let scan = await scanSource(root, rules, judging);
  for (let rest = rules.takeIgnoreRest(); rest?.isOverdue === false; rest = rules.takeIgnoreRest()) {
    await setTimeout(Math.max(0, rest.atMs - context.now()), undefined, { signal });
    scan = await scanSource(root, rules, judging);
  }
  const { difference } = await withBusy(states, (busy) => comparison.compareJudged(scan, busy, true));
  const facts = await factsOf(rules, deletes, scan, before, difference);
  const judged = brake(scan, difference.gone, facts);
  if (judged.halted) {
    const reason = scan.root === undefined ? rootless(scan, rules).reason : judged.reason;
    return { candidates: [], refused: [], skipped: [], braked: { ...judged, reason } };
  }
  const byHash = await findMoves(sourceFiles, difference.candidates, difference.gone);
  const { candidates, gone } = followMoves(difference, difference.candidates, byHash);
  const { refused, skipped } = difference;
  return { candidates, refused, skipped, braked: brake(scan, gone, facts) };
}

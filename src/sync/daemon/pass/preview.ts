import { setTimeout } from "node:timers/promises";
import type { SourceRow } from "../../ledger/sources/rows.ts";
import { brake, type Braked } from "../../plan/brakes.ts";
import type { Candidate, Difference, KnownFile, RelativePath } from "../../plan/model.ts";
import { followMoves } from "../../plan/moves.ts";
import { scopeTest } from "../../plan/scope.ts";
import { scanPaths, scanSource } from "../../scan/scan.ts";
import type { Due } from "../agenda/checks.ts";
import { brakeFacts, rootless } from "./brake-facts.ts";
import { compareJudged, compareWithLedger } from "./compare.ts";
import { type PassContext, PATHS_MAX, scanOptions, withBusy } from "./context.ts";
import { findMoves } from "./moved-files.ts";

/** The findings of a pass that has not run. */
export interface PassPreview extends Pick<Difference, "refused" | "skipped"> {
  readonly candidates: readonly Candidate[];
  readonly braked: Braked;
  /** Number of paths that cannot be read. */
  readonly unreadable: number;
}

/** The work of a pass that has not run. */
export interface Unsent {
  readonly candidates: readonly Candidate[];
  /** Rows whose file is gone, and whose delete no person has to approve. */
  readonly gone: readonly KnownFile[];
  /** Reports whether a path was checked. */
  readonly inScope: (path: RelativePath) => boolean;
}

/** Returns due files that would be read and sent. Writes nothing. */
export async function findUnsent(pass: PassContext, due: Due): Promise<Unsent> {
  const { root, rules } = pass.source;
  const whole = due.all || due.paths.length > PATHS_MAX;
  const scan = whole
    ? await scanSource(root, rules, scanOptions(pass))
    : await scanPaths(root, rules, due.paths, scanOptions(pass));
  // Nothing is known about a missing folder.
  if (scan.root === undefined) return { candidates: [], gone: [], inScope: () => false };
  const found = await withBusy(pass.agenda, (busy) => compareWithLedger(pass, scan, busy, true));
  const gone = found.gone.filter(({ state }) => state !== "held");
  return { candidates: found.candidates, gone, inScope: scopeTest(scan.scope) };
}

/** Returns what a pass over the whole source would find. Writes nothing. `before` is the source's row. */
export async function previewPass(pass: PassContext, before: SourceRow): Promise<PassPreview> {
  const { root, rules } = pass.source;
  let scan = await scanSource(root, rules, scanOptions(pass, true));
  for (let rest = rules.takeIgnoreRest(); rest?.isOverdue === false; rest = rules.takeIgnoreRest()) {
    await setTimeout(Math.max(0, rest.atMs - pass.context.now()), undefined, { signal: pass.signal });
    scan = await scanSource(root, rules, scanOptions(pass, true));
  }
  const { difference } = await withBusy(pass.agenda, (busy) => compareJudged(pass, scan, busy, true));
  const facts = await brakeFacts(pass, scan, before, difference);
  const judged = brake(scan, difference.gone, facts);
  const unreadable = scan.unreadable.length;
  if (judged.halted) {
    const reason = scan.root === undefined ? rootless(scan, rules).reason : judged.reason;
    return { candidates: [], refused: [], skipped: [], braked: { ...judged, reason }, unreadable };
  }
  const byHash = await findMoves(pass, difference.candidates, difference.gone);
  const { candidates, gone } = followMoves(difference, difference.candidates, byHash);
  const { refused, skipped } = difference;
  return { candidates, refused, skipped, braked: brake(scan, gone, facts), unreadable };
}

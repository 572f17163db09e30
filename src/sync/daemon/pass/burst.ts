import { type Braked, LATELY_MS } from "../../plan/brakes.ts";
import type { KnownFile, Scan } from "../../plan/model.ts";
import { scopeTest } from "../../plan/scope.ts";
import type { PassContext } from "./context.ts";

/**
 * A burst waits no longer than this. From then on its deletes count against the limits of later ones. Otherwise a
 * folder in which files constantly come and go would never have its deletes sent.
 */
const BURST_MAX_MS = LATELY_MS;
/** Deletes that wait for the end of a burst are checked at least this often, so that the source does not count as idle. */
const BURST_CHECK_MS = 1000;

/**
 * A missing file is a delete only when nothing else is dirty, because an event for its new name may be about to arrive.
 * It waits at most this long.
 */
const DELETE_WAIT_MS = 5000;
/** A second check comes no sooner than this, whatever the settle time: the other half of a rename is another event. */
const SECOND_CHECK_MS = 10;

/** The passes of a source. */
type BurstContext = Pick<PassContext, "context" | "sync" | "agenda" | "once">;

/**
 * Returns what may be done now of the brakes' decision: a burst of deletes is judged as a whole before any of it is sent. A
 * row outside of the scan's scope is still missing. What waits is checked again.
 */
export function ripeOf(
  pass: BurstContext,
  braked: Braked,
  scan: Scan,
  when: {
    /** Nothing else is about to be checked. */
    readonly quiet: boolean;
    /**
     * The result of `isBurstOver` when this pass began: a pass that began before the end has not checked everything that
     * it must.
     */
    readonly isBurstOver: boolean;
    /** How many files in flight are missing. If these are more than at an earlier end of the burst, it goes on. */
    readonly missingBusy: number;
  },
): Braked {
  const { context, sync, agenda, once } = pass;
  const { quiet, isBurstOver: wasOver, missingBusy } = when;
  const missing = agenda.missing();
  if (once) return braked;
  const nowMs = context.now();
  const inScope = scopeTest(scan.scope);
  const gone = [...braked.deletes, ...braked.held].filter((row) => !isDecided(row));
  const still = new Set(gone.map(({ id }) => id));
  for (const [path, { id }] of missing) if (!still.has(id) && inScope(path)) agenda.decide(path);
  for (const { id, path } of gone) if (missing.get(path)?.id !== id) agenda.miss(path, id);
  if (wasOver) agenda.missBusy(missingBusy);
  const endMs = burstEndMs(pass);
  const hasRested = ({ path }: KnownFile): boolean => {
    const restedMs = nowMs - (missing.get(path)?.sinceMs ?? nowMs);
    return restedMs > 0 && restedMs >= sync.settleMs && (quiet || restedMs >= DELETE_WAIT_MS);
  };
  // Holding sends nothing, and what holds a part of a burst holds all of it.
  const held = braked.held.filter((row) => isDecided(row) || hasRested(row));
  const isOver = wasOver && nowMs >= endMs;
  const deletes = braked.deletes.filter((row) => isDecided(row) || (isOver && hasRested(row)));
  for (const row of gone)
    if (!hasRested(row)) agenda.checkAgain(row.path, nowMs + Math.max(sync.settleMs, SECOND_CHECK_MS));
  for (const row of [...held, ...deletes]) if (!isDecided(row)) agenda.decide(row.path);
  const [first] = missing.keys();
  // After its end, only what has not rested is still missing.
  const burstCheckMs = isOver ? Infinity : Math.max(nowMs + SECOND_CHECK_MS, endMs);
  if (first !== undefined) agenda.checkAgain(first, Math.min(burstCheckMs, nowMs + BURST_CHECK_MS));
  return {
    ...braked,
    held,
    deletes,
    counted: braked.counted === 0 ? 0 : deletes.filter((row) => !isDecided(row)).length,
    // The reason shown to a person stays the same until new rows join the held ones.
    reason: held.every(isDecided) ? undefined : braked.reason,
  };
}

/** Reports whether files are missing and no further one has gone missing for some time, so that deletes may be sent. */
export function isBurstOver(pass: BurstContext): boolean {
  return pass.agenda.missing().size > 0 && pass.context.now() >= burstEndMs(pass);
}

/** Returns how many rows are missing: these, and those from other passes that are not ripe. */
export function missingWith({ agenda }: Pick<PassContext, "agenda">, gone: readonly KnownFile[]): number {
  const missing = agenda.missing();
  return missing.size + gone.filter(({ path }) => !missing.has(path)).length;
}

/** Returns when no further file will have gone missing for the length of the gap. */
function burstEndMs({ agenda, context }: BurstContext): number {
  let firstMs = Infinity;
  let lastMs = agenda.missingBusy().sinceMs;
  for (const { sinceMs } of agenda.missing().values()) {
    firstMs = Math.min(firstMs, sinceMs);
    lastMs = Math.max(lastMs, sinceMs);
  }
  return Math.min(lastMs + context.timing.burstGapMs, firstMs + BURST_MAX_MS);
}

/** Reports whether a delete is held, or a person agreed to it. */
function isDecided({ state }: KnownFile): boolean {
  return state === "held" || state === "doomed";
}

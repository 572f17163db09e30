import type { ActionContext } from "../actions/context.ts";
import type { AcknowledgedFile } from "../ledger/drift/drift.ts";
import type { NumberSet } from "../../lib/number-set.ts";
import { lossReason, NO_COUNTS, type DriftCounts } from "../plan/audit.ts";
import { parkMs } from "../plan/retry.ts";
import { askTitle, type Presence } from "./presence.ts";
import type { Drifted, Sweep } from "./sweep.ts";

/**
 * Keeps a source from refilling a service that was reset or restored from a backup. When most of its resources are gone
 * or changed at once, nothing is sent until a person agrees, or until they are back.
 */
export interface LossGuard {
  /** Reports whether nothing may be sent: held, or about to be compared with the service's list. */
  isClosed(): boolean;
  /**
   * Called when the resource of a row turned out to be gone. True: it may be created again. False: these are many, so
   * the list must be checked first; the whole source is checked then.
   */
  mayRecreate(row: number): boolean;
  /** Called when the service's answers raise doubts whether it is still the same. */
  suspect(): void;
  /** Records that exactly the resources of these rows are missing. They may be created again. */
  allow(missing: NumberSet): void;
  hold(reason: string): void;
  /**
   * Called before files are compared: checks the list if that is due. Returns false if nothing may be sent before
   * `nextCheckMs`.
   */
  ready(): Promise<boolean>;
  nextCheckMs(): number;
}

export interface LossGuardOptions {
  readonly source: number;
  readonly context: ActionContext;
  /** One pass: if the service refuses a list, the pass ends. */
  readonly once: boolean;
  /** Compares the source with the service's list; undefined if there is no list yet. */
  readonly check: () => Promise<Check | undefined>;
  /** Schedules a check of the whole source, at once or at a time. */
  readonly scanAt: (atMs: number) => void;
  readonly onWarning: (error: Error) => void;
}

/** The list's view of a source. */
export interface Check {
  /** Rows whose resources the list does not show. */
  readonly missing: NumberSet;
  /** Finds out whether these are gone indeed; undefined if that is unknown. */
  areGone(): Promise<boolean | undefined>;
  /** Why its resources must not simply be sent again; undefined if they may. */
  readonly reason: string | undefined;
  /** Sends everything again that drifted. */
  refill(): Promise<void>;
}

/**
 * Number of resources that may turn out to be gone within `GONE_MS` before the list is checked: single ones are
 * ordinary.
 */
const GONE_MAX = 3;
const GONE_MS = 10 * 60_000;
/**
 * Resources that a list showed as missing may be created again until none of them was for this long: the list may have lagged, and
 * what exists after all may be lost much later.
 */
const ALLOWED_MS = 10 * 60_000;

/** Opens the guard of a source, held if it was so before. */
export function openLossGuard(options: LossGuardOptions): LossGuard {
  const { source, context, once, check, scanAt, onWarning } = options;
  const { ledger, now } = context;
  let held = ledger.drift.loss(source) !== undefined;
  let suspected = false;
  ledger.flush();
  let gone = ledger.drift.goneLately(source);
  let allowed: { readonly missing: NumberSet; untilMs: number } | undefined;
  let checks = 0;
  let nextMs = 0;

  const hold = (reason: string): void => {
    held = true;
    suspected = false;
    checks += 1;
    nextMs = now() + parkMs(checks);
    scanAt(nextMs);
    ledger.note(() => ledger.drift.setLoss(source, reason));
  };
  const setGone = (timesMs: readonly number[]): void => {
    gone = timesMs;
    ledger.note(() => ledger.drift.setGoneLately(source, timesMs));
  };
  const open = (): void => {
    held = false;
    suspected = false;
    checks = 0;
    setGone([]);
    ledger.note(() => ledger.drift.setLoss(source, undefined));
  };
  const allow = (missing: NumberSet | undefined): void => {
    allowed = missing && { missing, untilMs: now() + ALLOWED_MS };
  };
  const suspect = (): void => {
    if (held || suspected) return;
    suspected = true;
    scanAt(now());
  };
  const compare = async (): Promise<boolean> => {
    ledger.flush();
    const agreed = ledger.drift.loss(source)?.agreed === true;
    if (isUnadopted(ledger, source)) {
      // The adoption judges rows of an old ledger, and held the source of a new one: it fetches the list itself and
      // reads the approval.
      held = false;
      suspected = false;
      return true;
    }
    const found = await check();
    if (found?.reason !== undefined && !agreed) {
      hold(found.reason);
      return false;
    }
    const isGone = agreed || (await found?.areGone());
    if (found !== undefined && isGone !== undefined) allow(isGone ? found.missing : undefined);
    if (agreed) await found?.refill();
    open();
    return true;
  };

  return {
    isClosed: () => held || suspected,
    mayRecreate: (row) => {
      const nowMs = now();
      if (allowed !== undefined && nowMs >= allowed.untilMs) allowed = undefined;
      if (allowed?.missing.has(row) === true) {
        allowed.untilMs = nowMs + ALLOWED_MS;
        return true;
      }
      const lately = latelyOf(gone, nowMs);
      if (lately.length < GONE_MAX) {
        setGone([...lately, nowMs]);
        return true;
      }
      suspect();
      return false;
    },
    suspect,
    allow,
    hold,
    ready: async () => {
      if (!held && !suspected) return true;
      ledger.flush();
      if (held && now() < nextMs && ledger.drift.loss(source)?.agreed !== true) return false;
      try {
        return await compare();
      } catch (error) {
        if (once || context.signal.aborted) throw error;
        onWarning(error instanceof Error ? error : new Error(String(error)));
        checks += 1;
        nextMs = now() + parkMs(checks);
        scanAt(nextMs);
        return false;
      }
    },
    nextCheckMs: () => nextMs,
  };
}

function latelyOf(goneMs: readonly number[], nowMs: number): readonly number[] {
  return goneMs.filter((atMs) => nowMs - atMs < GONE_MS);
}

/** Reports whether a source has never been matched with the service's resources. */
function isUnadopted({ drift }: ActionContext["ledger"], source: number): boolean {
  return !drift.isAdopted(source) && drift.unsearched(source).parts.length === 0;
}

/** Resources that are requested by id before a list counts as right; more if the answers differ. */
const SAMPLE = 5;
const SAMPLE_MIXED = 50;

/**
 * Judges what a sweep found about one source. A list may lag, or name another collection than before, so some of the
 * missing resources are requested by id first: each is sent the title that it has already, which changes nothing and is
 * the only query for one resource that every service answers. The missing ones count in the proportion in which these
 * are gone, and with them those that were recently found gone and created again. `withUnjudged`: resources sent so
 * shortly before that the list may lag count as well, if it does not show them; only the list shows whether one is
 * altered.
 */
export async function judgeLoss(
  context: ActionContext,
  sweep: Sweep,
  source: number,
  { signal, withUnjudged = false }: { readonly signal: AbortSignal; readonly withUnjudged?: boolean },
): Promise<string | undefined> {
  const judged = sweep.counts.get(source) ?? NO_COUNTS;
  const unjudged = (withUnjudged ? sweep.unjudged.get(source) : undefined) ?? { rows: 0, missing: 0 };
  const all = {
    ...judged,
    acknowledged: judged.acknowledged + unjudged.rows,
    missing: judged.missing + unjudged.missing,
  };
  if (all.missing + all.altered === 0) return undefined;
  context.ledger.flush();
  const { drift } = context.ledger;
  const remade = latelyOf(drift.goneLately(source), context.now()).length;
  const isHeld = drift.loss(source) !== undefined;
  const reasonFor = (counts: DriftCounts, goneShare: number): string | undefined => {
    const missing = Math.round(counts.missing * goneShare);
    return lossReason({ ...counts, missing: missing === 0 ? 0 : missing + remade }, isHeld);
  };
  const reason = (goneShare: number): string | undefined =>
    reasonFor(judged, goneShare) ?? reasonFor(all, goneShare);
  if (reason(1) === undefined) return undefined;
  const { there, asked } = await askMissing(context, sweep, source, all.missing, signal);
  // An unanswered one counts as lost too: what is then not sent is only held.
  return reason(asked === 0 ? 1 : 1 - there / asked);
}

/**
 * Finds out by single resources whether those that a list omits are gone. If most of them exist, the list was short, and
 * it does not permit to create again what the service loses later. Undefined if none can be requested now.
 */
export async function areGone(
  context: ActionContext,
  sweep: Sweep,
  source: number,
  signal: AbortSignal,
): Promise<boolean | undefined> {
  const missing = sweep.counts.get(source)?.missing ?? 0;
  // So few may be created again without a list as well.
  if (missing <= GONE_MAX) return true;
  const { gone, asked } = await askMissing(context, sweep, source, missing, signal);
  return asked === 0 ? undefined : 2 * gone > asked;
}

/** Requests a sample of a source's missing resources by id. */
async function askMissing(
  context: ActionContext,
  sweep: Sweep,
  source: number,
  missing: number,
  signal: AbortSignal,
): Promise<Record<Presence, number> & { readonly asked: number }> {
  const ask = async (size: number): Promise<Record<Presence, number> & { readonly asked: number }> => {
    const sample = await sampleOf(sweep, source, missing, size);
    const counts = { there: 0, gone: 0, unanswered: 0, asked: sample.length };
    for (const row of sample) counts[await askTitle(context, row, signal)] += 1;
    return counts;
  };
  const first = await ask(SAMPLE);
  const isMixed = first.there > 0 && first.there < first.asked;
  return isMixed ? await ask(SAMPLE_MIXED) : first;
}

/** Returns some of a source's missing resources, evenly from first to last. */
async function sampleOf(
  sweep: Sweep,
  source: number,
  missing: number,
  size: number,
): Promise<readonly AcknowledgedFile[]> {
  const step = Math.max(1, Math.floor(missing / size));
  const sample: AcknowledgedFile[] = [];
  let index = 0;
  for await (const row of sweep.unlisted()) {
    if (row.source !== source) continue;
    if (index % step === 0 && sample.length < size) sample.push(row);
    index += 1;
  }
  return sample;
}

/** Explains why a row's file is sent again. */
export function driftWords({ kind, alterations }: Pick<Drifted, "kind" | "alterations">): string {
  if (kind === "missing") return "the service no longer has it";
  return alterations.length === 0
    ? "it was changed at the service"
    : `its ${alterations.join(" and ")} ${alterations.length === 1 ? "was" : "were"} changed at the service`;
}

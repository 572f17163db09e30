import type { Recheck } from "../ledger/drift/adoptions.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { SourceSync } from "../source/source.ts";

/**
 * Compares an adopted source again once lists have caught up: resources they omitted then have been made a second time,
 * and resources they still showed may be gone.
 */
export interface Rechecks {
  /** Runs the comparisons that are due. */
  check(): Promise<void>;
  /** Runs them periodically until stopped. */
  schedule(): { stop(): void };
}

export interface RechecksOptions {
  readonly ledger: Ledger;
  readonly sources: () => readonly SourceSync[];
  /** How far the service's list may lag behind its answers; 0: never, so there is nothing to compare again. */
  readonly lagMs: number;
  readonly nowMs: () => number;
  /** Compares a source and repairs differences. Returns true if there were none. */
  readonly compare: (source: SourceSync, recheck: Recheck) => Promise<boolean>;
  readonly onFailure: (error: unknown) => void;
}

/**
 * Waits between comparisons, in lags. The first comparison judges what was sent until just after the adoption, so it
 * must come one lag after that.
 */
const WAIT_LAGS = [1.25, 4, 8, 16, 32];
/** This many successive comparisons that find nothing end the series: one list may be short as well. */
const CLEAN_CHECKS = 2;
/** If something is found repeatedly, the daily audit takes over. */
const CHECKS_MAX = 8;
/** How often, per lag, the schedule checks whether one is due. */
const CHECKS_PER_LAG = 4;

/** Opens the comparisons of a daemon's sources. */
export function openRechecks({
  ledger,
  sources,
  lagMs,
  nowMs,
  compare,
  onFailure,
}: RechecksOptions): Rechecks {
  const isDue = ({ checks, sinceMs }: Recheck): boolean =>
    nowMs() - sinceMs >= (WAIT_LAGS[checks] ?? WAIT_LAGS.at(-1) ?? 1) * lagMs;

  const checkOne = async (source: SourceSync): Promise<void> => {
    ledger.flush();
    const before = ledger.drift.recheck(source.id);
    if (before === undefined) return;
    const isNow = lagMs === 0 || isDue(before);
    if (!isNow && before.sinceMs > nowMs()) {
      // The clock was set back.
      await ledger.write(() => ledger.drift.setRecheck(source.id, { ...before, sinceMs: nowMs() }));
    }
    if (!isNow || source.isPaused() || source.guard.isClosed() || !source.isIdle()) return;
    const clean = lagMs === 0 || (await compare(source, before)) ? before.clean + 1 : 0;
    const checks = before.checks + 1;
    const isOver = lagMs === 0 || clean >= CLEAN_CHECKS || checks >= CHECKS_MAX;
    await ledger.write(() => {
      // It may have been adopted again meanwhile.
      if (ledger.drift.recheck(source.id)?.boundMs !== before.boundMs) return;
      ledger.drift.setRecheck(source.id, isOver ? undefined : { ...before, sinceMs: nowMs(), checks, clean });
    });
  };
  const check = async (): Promise<void> => {
    for (const source of sources()) await checkOne(source);
  };

  return {
    check,
    schedule: () => {
      let stopped = lagMs === 0;
      let timer: NodeJS.Timeout | undefined;
      const arm = (): void => {
        if (stopped) return;
        timer = setTimeout(() => {
          check()
            .catch((error: unknown) => {
              if (!stopped) onFailure(error);
            })
            .finally(arm);
        }, lagMs / CHECKS_PER_LAG);
        timer.unref();
      };
      arm();
      return {
        stop: () => {
          stopped = true;
          clearTimeout(timer);
        },
      };
    },
  };
}

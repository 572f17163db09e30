/** What a daemon does from time to time while it runs. */
export type Chores = ReturnType<typeof startChores>;

export interface ChoreOptions {
  /** Period of audits; 0: none. */
  readonly periodMs: number;
  /** When the last audit ended, according to this ledger; undefined: there was none. */
  readonly auditedMs: number | undefined;
  /** In [0, 1). */
  readonly random: () => number;
  /** Reports whether the daemon has nothing else to do. */
  readonly isIdle: () => boolean;
  readonly audit: () => Promise<void>;
  /** Compares what should be compared again because a list may have lagged. */
  readonly compareAgain: () => Promise<void>;
  /** Removes expired texts from the trash. */
  readonly prune: (signal: AbortSignal) => Promise<void>;
  readonly onFailure: (error: unknown) => void;
}

/** Interval at which the daemon looks for what is due. */
const EVERY_MS = 10_000;
const PRUNE_EVERY_MS = 24 * 3_600_000;
/** A start brings enough work. The first audit, if one is due, comes this much later. */
const FIRST_AUDIT_MS = 10 * 60_000;
/**
 * Audits of several daemons are spread by up to this part of their period, so that they do not all find the service
 * busy.
 */
const JITTER = 0.1;

/**
 * Starts the chores. A list of the bare specification contains all texts, so audits are never more frequent than the
 * period, across restarts too, and wait until the daemon has nothing else to do.
 */
export function startChores(options: ChoreOptions) {
  const { periodMs, auditedMs, random, isIdle, audit, compareAgain, prune, onFailure } = options;
  const stopping = new AbortController();
  const { signal } = stopping;
  let running: Promise<void> | undefined;
  let prunedMs = -Infinity;

  /** Returns when an audit is due after one that ended at a time, and no sooner than after a wait. */
  const dueAfter = (lastMs: number | undefined, waitMs: number): number => {
    if (periodMs === 0) return Infinity;
    const jitter = 1 + JITTER * random();
    const nowMs = Date.now();
    // A clock that was wrong once must not postpone it for years.
    const nextMs = lastMs === undefined ? 0 : Math.min(lastMs, nowMs) + periodMs * jitter;
    return Math.max(nextMs, nowMs + Math.min(waitMs, periodMs) * jitter);
  };
  let auditMs = dueAfter(auditedMs, FIRST_AUDIT_MS);

  const attempt = async (chore: () => Promise<void>): Promise<void> => {
    try {
      await chore();
    } catch (error) {
      if (!signal.aborted) onFailure(error);
    }
  };
  const work = async (): Promise<void> => {
    if (performance.now() - prunedMs >= PRUNE_EVERY_MS) {
      prunedMs = performance.now();
      await attempt(async () => prune(signal));
    }
    if (!signal.aborted) await attempt(compareAgain);
    if (signal.aborted || Date.now() < auditMs || !isIdle()) return;
    await attempt(audit);
    auditMs = dueAfter(Date.now(), 0);
  };
  const begin = (): void => {
    running ??= work().finally(() => (running = undefined));
  };
  begin();
  const timer = setInterval(begin, EVERY_MS);
  timer.unref();
  return {
    /** Stops the timer. Resolves when the chore that is running has ended. */
    stop: async (): Promise<void> => {
      clearInterval(timer);
      stopping.abort();
      await running;
    },
  };
}

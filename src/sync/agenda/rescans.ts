/** Whole scans of one source from time to time, to find what gave no hint. */
export interface Rescans {
  /** Chooses the period again; to be called when the reason may have changed for which changes go unseen. */
  choose(): void;
  stop(): void;
}

export interface RescansOptions {
  readonly rescan: () => void;
  /** Why some changes go unseen; undefined while all are seen. */
  readonly degraded: () => string | undefined;
  /** How often to scan while all changes are seen. */
  readonly periodMs: number;
  readonly random: () => number;
}

/** How often a source is scanned whose watching is incomplete. */
const POLL_MS = 15_000;
/** Scans of several sources and daemons drift apart by up to this part of their period. */
const JITTER = 0.25;

/** Starts the scans of a source. */
export function startRescans({ rescan, degraded, periodMs, random }: RescansOptions): Rescans {
  let timer: NodeJS.Timeout | undefined;
  let polls = false;
  let stopped = false;

  const arm = (): void => {
    clearTimeout(timer);
    if (stopped) return;
    polls = degraded() !== undefined;
    const jitter = 1 + JITTER * (2 * random() - 1);
    timer = setTimeout(
      () => {
        rescan();
        arm();
      },
      (polls ? Math.min(POLL_MS, periodMs) : periodMs) * jitter,
    );
  };
  arm();
  return {
    choose: () => {
      // Only a change counts: a watcher that fails again and again must not put the scan off each time.
      if ((degraded() !== undefined) !== polls) arm();
    },
    stop: () => {
      stopped = true;
      clearTimeout(timer);
    },
  };
}

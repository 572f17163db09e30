/** Periodic whole scans of one source, to find changes without an event. */
export interface Rescans {
  /** Chooses the period again. Call it when the reason for unseen changes may have changed. */
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

/** Period of scans for a source whose watching is incomplete. */
const POLL_MS = 15_000;
/** Scans of several sources and daemons are spread by up to this part of their period. */
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
      // Only a change counts: a watcher that fails repeatedly must not postpone the scan each time.
      if ((degraded() !== undefined) !== polls) arm();
    },
    stop: () => {
      stopped = true;
      clearTimeout(timer);
    },
  };
}

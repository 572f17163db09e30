import type { SourceSync } from "./source/source.ts";
import type { Parts } from "./parts.ts";
import type { DaemonSources } from "./sources.ts";

/** The periodic scans of watched sources. */
export interface Watching {
  /** Stops the scans. The watches belong to the sources. */
  stop(): void;
}

/** Watches sources, and scans each from time to time. `onChange` is called when `degraded` may have changed. */
export async function watchSources(
  { options, world, warn, ledger, context }: Parts,
  sources: DaemonSources,
  onChange: () => void,
): Promise<Watching> {
  const rescans = new Map<number, Rescans>();
  const watch = async (source: SourceSync): Promise<void> => {
    const watchChanged = (): void => {
      rescans.get(source.id)?.choose();
      onChange();
    };
    const opened = await world.watch({
      root: source.rules.source.absolutePath,
      rules: source.rules,
      onDirty: (path) => source.hint(path),
      onError: (error) => {
        warn(error);
        watchChanged();
      },
      onReady: () => {
        source.hint(undefined);
        watchChanged();
      },
    });
    sources.watches.set(source.id, opened);
    const timing = { periodMs: options.sync.rescanMinutes * 60_000, random: world.random };
    const rescan = (): void => {
      source.rescan();
      // A failure of this request ends the daemon by itself.
      context.capabilities.askAgain(context.signal).catch(() => undefined);
    };
    rescans.set(source.id, startRescans({ rescan, degraded: () => opened.degraded(), ...timing }));
  };
  const stop = (): void => {
    for (const each of rescans.values()) each.stop();
  };
  try {
    for (const source of sources.all()) {
      // A first sync need not wait for the watches: the scan after they are ready finds changes in between.
      if (ledger.files.isEmpty(source.id)) source.hint(undefined);
      await watch(source);
    }
  } catch (error) {
    stop();
    throw error;
  }
  return { stop };
}

/** Periodic whole scans of one source, to find changes without an event. */
type Rescans = ReturnType<typeof startRescans>;

interface RescansOptions {
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
export function startRescans({ rescan, degraded, periodMs, random }: RescansOptions) {
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
    /** Chooses the period again. Call it when the reason for unseen changes may have changed. */
    choose: (): void => {
      // Only a change counts: a watcher that fails repeatedly must not postpone the scan each time.
      if ((degraded() !== undefined) !== polls) arm();
    },
    stop: (): void => {
      stopped = true;
      clearTimeout(timer);
    },
  };
}

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
  const rescans: Watching[] = [];
  const watch = async (source: SourceSync): Promise<void> => {
    const opened = await world.watch({
      root: source.rules.source.absolutePath,
      rules: source.rules,
      onDirty: (path) => source.hint(path),
      onError: (error) => {
        warn(error);
        onChange();
      },
      onReady: () => {
        source.hint(undefined);
        onChange();
      },
    });
    sources.watches.set(source.id, opened);
    const rescan = (): void => {
      source.rescan();
      // A failure of this request ends the daemon by itself.
      context.capabilities.askAgain(context.signal).catch(() => undefined);
    };
    const periodMs = options.sync.rescanMinutes * 60_000;
    rescans.push(startRescans({ rescan, degraded: () => opened.degraded(), periodMs, random: world.random }));
  };
  const stop = (): void => {
    for (const each of rescans) each.stop();
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

/** Period of scans for a source whose watching is incomplete. */
const POLL_MS = 15_000;
/** Scans of several sources and daemons are spread by up to this part of their period. */
const JITTER = 0.25;

/** Starts periodic whole scans of a source, to find changes without an event. */
export function startRescans({
  rescan,
  degraded,
  periodMs,
  random,
}: {
  readonly rescan: () => void;
  /** Why some changes go unseen; undefined while all are seen. */
  readonly degraded: () => string | undefined;
  /** How often to scan while all changes are seen. */
  readonly periodMs: number;
  readonly random: () => number;
}): Watching {
  const spread = (ms: number): number => ms * (1 + JITTER * (2 * random() - 1));
  let leftMs = spread(periodMs);
  const pollMs = spread(Math.min(POLL_MS, periodMs));
  const timer = setInterval(() => {
    leftMs -= pollMs;
    if (leftMs > 0 && degraded() === undefined) return;
    leftMs = spread(periodMs);
    rescan();
  }, pollMs);
  return { stop: () => clearInterval(timer) };
}

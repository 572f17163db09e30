import type { LiveStatus, RemovedStatus, SourceStatus } from "../../wire/daemon.ts";
import { removedOf, statusOf } from "../operator/status.ts";
import type { Parts } from "./parts.ts";
import type { DaemonSources } from "./sources.ts";

/** A daemon, as of now. */
export interface DaemonStatus extends Pick<
  LiveStatus,
  "idle" | "progress" | "removed" | "service" | "sources"
> {
  /** Files done a second lately; undefined while nothing is done. */
  readonly filesPerSecond: number | undefined;
}

/** How the daemon fares, for whoever measures it. */
export interface DaemonFigures {
  readonly status: DaemonStatus;
  /**
   * For how long the oldest change waits that was noticed and is not acknowledged; 0 where none does. What a person must
   * decide (held deletes, a paused or halted source) does not count, nor what the service refuses.
   */
  readonly oldestWaitingSeconds: number;
  /** Requests that may be on their way side by side: as many as configured, fewer while the service asks for it. */
  readonly concurrency: number;
  /** Whether every source was compared with the ledger once, so that all that is to be done is known. */
  readonly planned: boolean;
}

/** What is told of a daemon: to who asks, and through the ledger to other processes. */
export interface StatusReporter {
  status(): DaemonStatus;
  /** Writes what sources do to the ledger now. */
  persist(): void;
  /** The same, soon. */
  persistSoon(): void;
  /** Writes nothing more of itself. */
  stop(): void;
}

/** Progress is written to the ledger, for other processes to read, this often. */
const PERSIST_MS = 500;
/**
 * While work goes on, what the ledger says of the sources is read again this often: a bar asks ten times a second, and
 * each read commits what waits.
 */
const READ_MS = 250;

/** Opens the telling of a daemon. */
export function openStatusReporter(parts: Parts, sources: () => DaemonSources): StatusReporter {
  const { ledger, life, pacer, work, context } = parts;
  const speed = openSpeed();
  let timer: NodeJS.Timeout | undefined;
  let last: readonly SourceStatus[] = [];
  let lastRemoved: readonly RemovedStatus[] = [];
  let lastMs = Number.NEGATIVE_INFINITY;
  let lastPlanned = 0;

  const persist = (): void => {
    clearTimeout(timer);
    timer = undefined;
    speed.sample(work.progress().done, context.now());
    const { watches } = sources();
    for (const source of sources().all()) {
      const reason = life.isEnding() ? null : (watches.get(source.id)?.degraded() ?? null);
      ledger.noteLast(source.noteBacklog);
      ledger.note(() => ledger.sources.setDegraded(source.id, reason));
    }
  };
  const sourcesStatus = (idle: boolean): readonly SourceStatus[] => {
    const nowMs = context.now();
    // What was read before all work was known says of a first sync that nothing waits.
    const planned = sources()
      .all()
      .filter((source) => source.isPlanned()).length;
    const isFresh = nowMs - lastMs < READ_MS && planned === lastPlanned;
    if (!idle && !life.isEnding() && last.length > 0 && isFresh) return last;
    lastPlanned = planned;
    const { watches } = sources();
    last = parts.read(() => statusOf(ledger, sources().all(), (id) => watches.get(id)?.degraded()), last);
    lastRemoved = parts.read(() => removedOf(ledger.sources), lastRemoved);
    lastMs = nowMs;
    return last;
  };

  return {
    status: () => {
      const idle = (sources().all().length > 0 || parts.options.sources.length === 0) && sources().isIdle();
      return {
        service: pacer.state(),
        sources: sourcesStatus(idle),
        removed: lastRemoved,
        progress: work.progress(),
        filesPerSecond: speed.perSecond(context.now()),
        idle,
      };
    },
    persist,
    persistSoon: () => {
      // What is left when the daemon stops is written by the stop itself.
      if (!life.isEnding()) timer ??= setTimeout(persist, PERSIST_MS);
    },
    stop: () => clearTimeout(timer),
  };
}

/** How fast work goes, over the last seconds. */
export interface Speed {
  /** So much was done at that time. */
  sample(done: number, nowMs: number): void;
  /** Undefined when nothing was done lately, or it is too early to say. */
  perSecond(nowMs: number): number | undefined;
}

/** Over this time: long enough that a large file is no standstill, short enough to follow a change. */
const WINDOW_MS = 15_000;

/** Nothing is known of the speed. */
export function openSpeed(): Speed {
  let samples: { readonly done: number; readonly atMs: number }[] = [];
  return {
    sample: (done, atMs) => {
      // Of those before the window one is kept: what was done since then is what the window tells.
      const from = samples.findLastIndex((sample) => atMs - sample.atMs >= WINDOW_MS);
      samples = [...samples.slice(Math.max(0, from)), { done, atMs }];
    },
    perSecond: (nowMs) => {
      const inside = samples.filter(({ atMs }) => nowMs - atMs < WINDOW_MS);
      const first = inside[0];
      const last = inside.at(-1);
      if (first === undefined || last === undefined || last.done === first.done) return undefined;
      return (1000 * (last.done - first.done)) / (last.atMs - first.atMs);
    },
  };
}

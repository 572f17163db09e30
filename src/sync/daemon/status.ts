import type { LiveStatus, PaceState, RemovedStatus, SourceStatus } from "../../wire/daemon-status.ts";
import { paceTrouble } from "../send/remote/pacer.ts";
import { removedOf, statusOf } from "../operate/status.ts";
import type { Parts } from "./parts.ts";
import type { DaemonSources } from "./sources.ts";
import { openRate, openTimeLeft } from "./time-left.ts";
import { earliest } from "../../lib/earliest.ts";

/** Status of a daemon at one time. */
export type DaemonStatus = Omit<LiveStatus, "pid" | "version" | "startedMs" | "notApplied" | "pending">;

/** Figures of a daemon, for metrics. */
export interface DaemonFigures {
  readonly status: DaemonStatus;
  /**
   * Age of the oldest change that was noticed and is not acknowledged; 0 if there is none. Excludes what a person must decide
   * (held deletes, a paused or halted source) and what the service refuses.
   */
  readonly oldestWaitingSeconds: number;
  /** Requests that may be in flight at once: the configured number, or fewer while the service asks for it. */
  readonly concurrency: number;
  /** Whether every source has been compared with the ledger once, so that all work is known. */
  readonly planned: boolean;
}

/** Time constant of the speed, in milliseconds: follows a change, and outlasts a large file. */
const SPEED_MS = 15_000;
/** Interval at which progress is written to the ledger for other processes. */
const PERSIST_MS = 500;
/**
 * Interval at which the sources' status is read from the ledger during work: a progress bar asks ten times a second, and each
 * read commits what is pending.
 */
const READ_MS = 250;

/** Opens the status reporter of a daemon. */
export function openStatusReporter(parts: Parts, sources: () => DaemonSources) {
  const { ledger, lifecycle, work, context } = parts;
  const timeLeft = openTimeLeft();
  const speed = openRate(SPEED_MS);
  let timer: NodeJS.Timeout | undefined;
  let last: readonly SourceStatus[] = [];
  let lastRemoved: readonly RemovedStatus[] = [];
  let lastMs = Number.NEGATIVE_INFINITY;
  let lastPlanned = 0;

  const sample = (): void => {
    const isPlanned = sources()
      .all()
      .every((source) => source.isPlanned());
    const isOpen = paceTrouble(parts.pacer.state()) === undefined;
    const progress = work.progress();
    speed.sample(progress.done, progress.total, isOpen, context.now());
    timeLeft.sample(progress, isOpen && isPlanned, context.now());
  };
  const persist = (): void => {
    clearTimeout(timer);
    timer = undefined;
    sample();
    for (const source of sources().all()) ledger.noteLast(source.id, source.noteBacklog);
  };
  const sourcesStatus = (idle: boolean): readonly SourceStatus[] => {
    const nowMs = context.now();
    // Figures read before all work was known would show a first sync without waiting files.
    const planned = sources()
      .all()
      .filter((source) => source.isPlanned()).length;
    const isFresh = nowMs - lastMs < READ_MS && planned === lastPlanned;
    if (!idle && !lifecycle.isEnding() && last.length > 0 && isFresh) return last;
    lastPlanned = planned;
    const { watches } = sources();
    last = parts.read(() => statusOf(ledger, sources().all(), (id) => watches.get(id)?.degraded()), last);
    lastRemoved = parts.read(() => removedOf(ledger.sources), lastRemoved);
    lastMs = nowMs;
    return last;
  };

  return {
    status: (): DaemonStatus => {
      const idle = (sources().all().length > 0 || parts.options.sources.length === 0) && sources().isIdle();
      sample();
      return {
        service: parts.pacer.state(),
        sources: sourcesStatus(idle),
        removed: lastRemoved,
        progress: work.progress(),
        filesPerSecond: speed.perSecond(),
        secondsLeft: timeLeft.seconds(),
        idle,
      };
    },
    /** Writes the sources' work to the ledger now. */
    persist,
    /** Writes it soon. */
    persistSoon: (): void => {
      // The stop itself writes what is left.
      if (!lifecycle.isEnding()) timer ??= setTimeout(persist, PERSIST_MS);
    },
    /** Cancels a delayed write. */
    stop: (): void => clearTimeout(timer),
  };
}

/** Returns the figures of a daemon now. */
export function figuresOf(parts: Parts, sources: DaemonSources, status: () => DaemonStatus): DaemonFigures {
  const { context, options } = parts;
  const sinceMs = parts.read(
    () => earliest(...sources.all().map((source) => source.oldestWaitingMs())),
    undefined,
  );
  return {
    status: status(),
    oldestWaitingSeconds: sinceMs === undefined ? 0 : Math.max(0, (context.now() - sinceMs) / 1000),
    concurrency: parts.pacer.width(),
    planned:
      sources.all().length === options.sources.length && sources.all().every((source) => source.isPlanned()),
  };
}

/** A sample of one part of a daemon's work. */
interface Beat {
  /** Increases with what the part does. */
  readonly moves: number;
  /** There is work to do now. */
  readonly atWork: boolean;
}

/**
 * A sample of a daemon's work, in two parts: otherwise the regular checks of the folders would hide a hanging queue for
 * ever.
 */
export interface DaemonPulse {
  /** Files that are read and sent. Increases with files read, requests ended and jobs done. */
  readonly queue: Beat;
  /**
   * Checks of the folders. Increases with their steps, and with requests ended, because a check may list what the
   * service has.
   */
  readonly scan: Beat;
  /** `limited` counts as open: a limit slows work, but does not stop it. */
  readonly service: PaceState["kind"];
}

/** Samples a daemon's work now. */
export function pulseOf(parts: Parts, sources: DaemonSources): DaemonPulse {
  const pace = parts.pacer.state();
  return {
    queue: {
      moves: parts.steps().requests + parts.work.read() + parts.work.progress().done,
      atWork: sources.all().some((source) => source.isSending()),
    },
    scan: {
      moves: parts.steps().requests + parts.steps().scans,
      atWork: sources.all().some((source) => source.isScanning()),
    },
    service: pace.kind === "limited" ? "open" : pace.kind,
  };
}

import type { Gauge, Registry } from "prom-client";
import type { DaemonObserver } from "../sync/send/remote/observer.ts";
import type { DaemonFigures } from "../sync/daemon/status.ts";
import { setOneOf } from "./one-of.ts";
import { openSeries } from "./series.ts";

/** The measured part of an activity. */
interface MeasuredActivity {
  readonly action: string;
  readonly outcome: string;
  readonly durationMs: number;
}

/** Measures the daemon. */
export interface DaemonMeasures extends DaemonObserver {
  /** Records a completed or failed action on a file. */
  activity(activity: MeasuredActivity): void;
  set(figures: DaemonFigures): void;
  /** Resets all figures, as for a daemon that has not scanned any source. */
  forget(): void;
}

/** Buckets in seconds: a text change takes a millisecond on loopback, a large PDF a minute. */
const WORK_SECONDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120];
/** Buckets in seconds: a hundred files take a millisecond, a million on a network a quarter of an hour. */
const RESCAN_SECONDS = [0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900];

const PACE_STATES = ["open", "limited", "waiting", "key_refused"] as const;

/** Adds the daemon's metrics to a registry. */
export function measureDaemon(registry: Registry): DaemonMeasures {
  const { counter, gauge, histogram } = openSeries(registry);
  const requests = counter(
    "kbsync_sync_requests_total",
    "Requests to the service, by outcome.",
    "request",
    "outcome",
  );
  const requestSeconds = histogram(
    "kbsync_sync_request_duration_seconds",
    "Duration of requests to the service.",
    WORK_SECONDS,
    "request",
  );
  const activities = counter(
    "kbsync_sync_activities_total",
    "Completed and failed actions on files.",
    "action",
    "outcome",
  );
  const activitySeconds = histogram(
    "kbsync_sync_activity_duration_seconds",
    "Duration of bringing a file to the service.",
    WORK_SECONDS,
    "action",
  );
  const rescanSeconds = histogram(
    "kbsync_sync_rescan_duration_seconds",
    "Duration of comparing a whole source with the ledger.",
    RESCAN_SECONDS,
  );
  const lastRescan = gauge(
    "kbsync_sync_last_rescan_timestamp_seconds",
    "Time of the last full comparison of the source for which it is longest ago.",
  );
  const state = measureState(registry);
  const rescannedAt = new Map<number, number>();

  return {
    activity: ({ action, outcome, durationMs }) => {
      activities.inc({ action, outcome });
      if (outcome === "done") activitySeconds.observe({ action }, durationMs / 1000);
    },
    request: (request, outcome, seconds) => {
      requests.inc({ request, outcome });
      requestSeconds.observe({ request }, seconds);
    },
    rescanned: (source, seconds) => {
      rescanSeconds.observe(seconds);
      rescannedAt.set(source, Date.now() / 1000);
      lastRescan.set(Math.min(...rescannedAt.values()));
    },
    set: (figures) => state.set(figures),
    forget: () => {
      rescannedAt.clear();
      lastRescan.remove();
      state.forget();
    },
  };
}

/** Measures the state of the sources, the queue and the service. */
function measureState(registry: Registry): Pick<DaemonMeasures, "set" | "forget"> {
  const { gauge } = openSeries(registry);
  const files = gauge("kbsync_sync_files", "Files of all sources, by state.", "state");
  const sources = gauge("kbsync_sync_sources", "Sources in a condition; one may be in several.", "condition");
  const watched = gauge(
    "kbsync_sync_watched_sources",
    "Sources by how changes are detected: events of the system only, or additional scans every 15 s.",
    "backend",
  );
  const oldest = gauge(
    "kbsync_sync_oldest_waiting_seconds",
    "Age of the oldest detected change without an acknowledgement.",
  );
  const planned = gauge(
    "kbsync_sync_planned",
    "1 once every source has been compared with the ledger, so that all work is known.",
  );
  const queue = gauge("kbsync_sync_queue_files", "Planned files that are not done.");
  const speed = gauge("kbsync_sync_files_per_second", "Files done per second, over the last 15 s.");
  const concurrency = gauge("kbsync_sync_concurrency", "Limit of concurrent requests.");
  const pace = gauge(
    "kbsync_sync_service_state",
    "1 for the current state of the service as the daemon sees it, 0 for the others.",
    "state",
  );
  return {
    set: ({ status, ...figures }) => {
      const { progress } = status;
      setEach(files, "state", filesByState(status));
      setEach(sources, "condition", sourcesByCondition(status));
      const polled = status.sources.filter(({ degraded }) => degraded !== null).length;
      setEach(watched, "backend", { events: status.sources.length - polled, polling: polled });
      oldest.set(figures.oldestWaitingSeconds);
      planned.set(Number(figures.planned));
      queue.set(Math.max(0, progress.total - progress.done));
      speed.set(status.idle ? 0 : (status.filesPerSecond ?? 0));
      concurrency.set(figures.concurrency);
      setOneOf(pace, {}, PACE_STATES, status.service.kind);
    },
    forget: () => {
      for (const each of [files, sources, watched, pace]) each.reset();
      for (const each of [oldest, planned, queue, speed, concurrency]) each.remove();
    },
  };
}

type Status = DaemonFigures["status"];

function filesByState({ sources }: Status): Record<string, number> {
  const sum = (count: (source: Status["sources"][number]) => number): number =>
    sources.reduce((total, source) => total + count(source), 0);
  return {
    searchable: sum(({ searchable }) => searchable),
    reading: sum(({ reading }) => reading),
    waiting: sum(({ waiting }) => waiting),
    failed: sum(({ failed }) => failed),
    deletes_refused: sum(({ deletesRefused }) => deletesRefused),
    skipped: sum(({ skipped }) => skipped),
    held: sum(({ held }) => held),
    unreadable: sum(({ unreadable }) => unreadable),
  };
}

function sourcesByCondition({ sources, removed }: Status): Record<string, number> {
  return {
    configured: sources.length,
    halted: sources.filter(({ halted }) => halted).length,
    holding: sources.filter(({ held }) => held > 0).length,
    paused: sources.filter(({ paused }) => paused).length,
    removed: removed.length,
  };
}

function setEach(gauge: Gauge, label: string, values: Readonly<Record<string, number>>): void {
  for (const [name, value] of Object.entries(values)) gauge.set({ [label]: name }, value);
}

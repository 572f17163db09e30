import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import type { DaemonObserver } from "../sync/remote/observer.ts";
import type { DaemonFigures } from "../sync/daemon/status.ts";
import { setOneOf } from "./one-of.ts";

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

const PACE_STATES = ["open", "waiting", "key_refused"] as const;

/** Adds the daemon's metrics to a registry. */
export function measureDaemon(registry: Registry): DaemonMeasures {
  const registers = [registry];
  const plain = (name: string, help: string): Gauge => new Gauge({ name, help, registers });
  const by = (label: string, name: string, help: string): Gauge =>
    new Gauge({ name, help, labelNames: [label], registers });

  const files = by("state", "kbsync_sync_files", "Files of all sources, by state.");
  const sources = by("condition", "kbsync_sync_sources", "Sources in a condition; one may be in several.");
  const watched = by(
    "backend",
    "kbsync_sync_watched_sources",
    "Sources by how changes are detected: events of the system only, or additional scans every 15 s.",
  );
  const oldest = plain(
    "kbsync_sync_oldest_waiting_seconds",
    "Age of the oldest detected change without an acknowledgement.",
  );
  const planned = plain(
    "kbsync_sync_planned",
    "1 once every source has been compared with the ledger, so that all work is known.",
  );
  const queue = plain("kbsync_sync_queue_files", "Planned files that are not done.");
  const speed = plain("kbsync_sync_files_per_second", "Files done per second, over the last 15 s.");
  const concurrency = plain("kbsync_sync_concurrency", "Limit of concurrent requests.");
  const pace = by(
    "state",
    "kbsync_sync_service_state",
    "1 for the current state of the service as the daemon sees it, 0 for the others.",
  );
  const lastRescan = plain(
    "kbsync_sync_last_rescan_timestamp_seconds",
    "Time of the last full comparison of the source for which it is longest ago.",
  );
  const rescanSeconds = new Histogram({
    name: "kbsync_sync_rescan_duration_seconds",
    help: "Duration of comparing a whole source with the ledger.",
    buckets: RESCAN_SECONDS,
    registers,
  });
  const requests = new Counter({
    name: "kbsync_sync_requests_total",
    help: "Requests to the service, by outcome.",
    labelNames: ["request", "outcome"],
    registers,
  });
  const requestSeconds = new Histogram({
    name: "kbsync_sync_request_duration_seconds",
    help: "Duration of requests to the service.",
    labelNames: ["request"],
    buckets: WORK_SECONDS,
    registers,
  });
  const activities = new Counter({
    name: "kbsync_sync_activities_total",
    help: "Completed and failed actions on files.",
    labelNames: ["action", "outcome"],
    registers,
  });
  const activitySeconds = new Histogram({
    name: "kbsync_sync_activity_duration_seconds",
    help: "Duration of bringing a file to the service.",
    labelNames: ["action"],
    buckets: WORK_SECONDS,
    registers,
  });
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
    set: ({ status, ...figures }) => {
      const { sources: all, progress } = status;
      const sum = (count: (source: (typeof all)[number]) => number): number =>
        all.reduce((total, source) => total + count(source), 0);
      files.set(
        { state: "in_agreement" },
        sum(({ halted, inAgreement }) => (halted ? 0 : inAgreement)),
      );
      // For a halted source it is unknown what still agrees.
      files.set(
        { state: "unknown" },
        sum(({ halted, inAgreement }) => (halted ? inAgreement : 0)),
      );
      for (const state of ["waiting", "failed", "skipped", "held", "unreadable"] as const)
        files.set(
          { state },
          sum((source) => source[state]),
        );
      sources.set({ condition: "configured" }, all.length);
      sources.set(
        { condition: "halted" },
        sum(({ halted }) => Number(halted)),
      );
      sources.set(
        { condition: "holding" },
        sum(({ halted, held }) => Number(!halted && held > 0)),
      );
      sources.set(
        { condition: "paused" },
        sum(({ paused }) => Number(paused)),
      );
      sources.set({ condition: "removed" }, status.removed.length);
      watched.set(
        { backend: "events" },
        sum(({ degraded }) => Number(degraded === null)),
      );
      watched.set(
        { backend: "polling" },
        sum(({ degraded }) => Number(degraded !== null)),
      );
      oldest.set(figures.oldestWaitingSeconds);
      planned.set(Number(figures.planned));
      queue.set(Math.max(0, progress.total - progress.done));
      speed.set(status.idle ? 0 : (status.filesPerSecond ?? 0));
      concurrency.set(figures.concurrency);
      setOneOf(pace, {}, PACE_STATES, status.service.kind);
    },
    forget: () => {
      rescannedAt.clear();
      for (const gauge of [files, sources, watched, pace]) gauge.reset();
      for (const gauge of [oldest, planned, queue, speed, concurrency, lastRescan]) gauge.remove();
    },
  };
}

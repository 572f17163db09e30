import { collectDefaultMetrics, Registry } from "prom-client";
import type { ServiceFigures, ServiceObserver } from "../kb/observer.ts";
import type { DaemonObserver } from "../sync/send/remote/observer.ts";
import type { DaemonFigures } from "../sync/daemon/status.ts";
import { measureDaemon, type DaemonMeasures } from "./daemon.ts";
import { openSeries } from "./series.ts";
import { measureService, type ServiceMeasures } from "./service.ts";

/**
 * The Prometheus metrics of the process. No label names an account, an owner, a source or a file, and each has a bounded
 * set of values: the metrics disclose no documents, and cost the same at any size.
 */
export interface Metrics {
  readonly service: ServiceObserver;
  readonly daemon: DaemonObserver & Pick<DaemonMeasures, "activity">;
  /** Sets the function that supplies the service's figures at each reading. */
  readService(figures: () => Promise<ServiceFigures>): void;
  /** Sets the function that supplies the daemon's figures at each reading, and resets those of an earlier daemon. */
  readDaemon(figures: () => DaemonFigures): void;
  /**
   * Renders the metrics in the text format of Prometheus. Omits a part that cannot be read and counts the failure in
   * `kbsync_metrics_failures_total`.
   */
  text(): Promise<{ readonly contentType: string; readonly text: string }>;
}

/** Sampling interval of the event loop's lag in milliseconds. Node's default of 10 wakes an idle daemon 100 times a second. */
const LOOP_SAMPLE_MS = 100;

const BUILD_HELP = "Always 1; the labels hold the versions of kbsync and Node.js.";

/** Opens the metrics. Default metrics of the process start with the first reading. */
export function openMetrics(version: string): Metrics {
  const registry = new Registry();
  const { counter, gauge } = openSeries(registry);
  gauge("kbsync_build_info", BUILD_HELP, "version", "node").set({ version, node: process.versions.node }, 1);
  const failures = counter(
    "kbsync_metrics_failures_total",
    "Readings in which the figures of a part were unavailable.",
    "part",
  );
  let service: ServiceMeasures | undefined;
  let daemon: DaemonMeasures | undefined;
  const serviceMeasures = (): ServiceMeasures => (service ??= measureService(registry));
  const daemonMeasures = (): DaemonMeasures => (daemon ??= measureDaemon(registry));
  let readService: (() => Promise<ServiceFigures>) | undefined;
  let readDaemon: (() => DaemonFigures) | undefined;
  let hasDefaults = false;

  const read = async <M extends { forget(): void }>(
    part: string,
    measures: M,
    take: (measures: M) => Promise<void> | void,
  ): Promise<void> => {
    try {
      await take(measures);
    } catch {
      // A failing part must not hide the others. Its absence and this counter show the failure.
      failures.inc({ part });
      measures.forget();
    }
  };

  return {
    service: {
      request: (operation, status, seconds) => serviceMeasures().request(operation, status, seconds),
      search: (tier, seconds) => serviceMeasures().search(tier, seconds),
      stage: (stage, seconds) => serviceMeasures().stage(stage, seconds),
      chunks: (count) => serviceMeasures().chunks(count),
      tokens: (model, kind, count) => serviceMeasures().tokens(model, kind, count),
      question: (outcome) => serviceMeasures().question(outcome),
    },
    daemon: {
      request: (name, outcome, seconds) => daemonMeasures().request(name, outcome, seconds),
      rescanned: (source, seconds) => daemonMeasures().rescanned(source, seconds),
      activity: (activity) => daemonMeasures().activity(activity),
    },
    readService: (figures) => {
      serviceMeasures();
      readService = figures;
    },
    readDaemon: (figures) => {
      daemonMeasures().forget();
      readDaemon = figures;
    },
    text: async () => {
      if (!hasDefaults) {
        hasDefaults = true;
        collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: LOOP_SAMPLE_MS });
      }
      const serviceFigures = readService;
      if (serviceFigures !== undefined)
        await read("service", serviceMeasures(), async (measures) => measures.set(await serviceFigures()));
      const daemonFigures = readDaemon;
      if (daemonFigures !== undefined)
        await read("daemon", daemonMeasures(), (measures) => measures.set(daemonFigures()));
      return { contentType: registry.contentType, text: await registry.metrics() };
    },
  };
}

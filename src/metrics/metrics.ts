import { collectDefaultMetrics, Counter, Gauge, Registry } from "prom-client";
import type { ServiceFigures, ServiceObserver } from "../kb/observer.ts";
import type { DaemonObserver } from "../sync/remote/observer.ts";
import type { DaemonFigures } from "../sync/daemon/status.ts";
import { measureDaemon, type DaemonMeasures } from "./daemon.ts";
import { measureService, type ServiceMeasures } from "./service.ts";

/**
 * What the process measures, for Prometheus. No label names an account, an owner, a source or a file, and each has a
 * bounded set of values: the metrics may be read by whoever may read none of the documents, and cost the same at any size.
 */
export interface Metrics {
  readonly service: ServiceObserver;
  readonly daemon: DaemonObserver & Pick<DaemonMeasures, "activity">;
  /** From now on the service's figures are asked for at each reading. */
  readService(figures: () => Promise<ServiceFigures>): void;
  /** From now on the daemon's figures are asked for at each reading; of another daemon than before, its alone. */
  readDaemon(figures: () => DaemonFigures): void;
  /**
   * What is measured, in the text form of Prometheus. What cannot be read at the moment is left out, and counted in
   * `kbsync_metrics_failures_total`.
   */
  text(): Promise<{ readonly contentType: string; readonly text: string }>;
}

/** The event loop's lag is sampled this often, in milliseconds: Node's own 10 would wake a daemon at rest 100 times a second. */
const LOOP_SAMPLE_MS = 100;

/** Starts measuring: the program's own counters at once, those of the process with the first reading. */
export function openMetrics(version: string): Metrics {
  const registry = new Registry();
  const registers = [registry];
  new Gauge({
    name: "kbsync_build_info",
    help: "1; the labels tell the version of kbsync and of Node.js.",
    labelNames: ["version", "node"],
    registers,
  }).set({ version, node: process.versions.node }, 1);
  const failures = new Counter({
    name: "kbsync_metrics_failures_total",
    help: "Readings in which the figures of a part could not be had.",
    labelNames: ["part"],
    registers,
  });
  let service: ServiceMeasures | undefined;
  let daemon: DaemonMeasures | undefined;
  const serviceMeasures = (): ServiceMeasures => (service ??= measureService(registry));
  const daemonMeasures = (): DaemonMeasures => (daemon ??= measureDaemon(registry));
  let readService: (() => Promise<ServiceFigures>) | undefined;
  let readDaemon: (() => DaemonFigures) | undefined;
  let hasDefaults = false;

  const read = async (part: string, take: () => Promise<void> | void, forget: () => void): Promise<void> => {
    try {
      await take();
    } catch {
      // A part that is in trouble must not hide the others: whoever reads sees that it is missing, and how often.
      failures.inc({ part });
      forget();
    }
  };

  return {
    service: {
      request: (operation, status, seconds) => serviceMeasures().request(operation, status, seconds),
      search: (tier, seconds) => serviceMeasures().search(tier, seconds),
      stage: (stage, seconds) => serviceMeasures().stage(stage, seconds),
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
      if (readService !== undefined) {
        const figures = readService;
        const measures = serviceMeasures();
        await read(
          "service",
          async () => measures.set(await figures()),
          () => measures.forget(),
        );
      }
      if (readDaemon !== undefined) {
        const figures = readDaemon;
        const measures = daemonMeasures();
        await read(
          "daemon",
          () => measures.set(figures()),
          () => measures.forget(),
        );
      }
      return { contentType: registry.contentType, text: await registry.metrics() };
    },
  };
}

import type { Config } from "../../config/load.ts";
import type { Metrics } from "../../metrics/metrics.ts";
import type { Listener } from "../../metrics/listener.ts";
import { programVersion } from "./version.ts";

/** Starts measuring. Loaded when needed: a short command measures nothing. */
export async function startMetrics(): Promise<Metrics> {
  const { openMetrics } = await import("../../metrics/metrics.ts");
  return openMetrics(programVersion());
}

/**
 * The metrics of a process that runs the daemon: those of the embedded service where it is in this process, else its own
 * where the configuration has a port for them. Undefined: nobody could read any.
 */
export async function daemonMetrics(
  config: Config,
  service: { readonly metrics?: Metrics },
): Promise<Metrics | undefined> {
  return service.metrics ?? (config.metrics.port === undefined ? undefined : startMetrics());
}

/** Listens on the port that the configuration has for metrics, if it has one. Throws what listening throws. */
export async function serveMetrics(
  config: Config,
  metrics: Metrics | undefined,
  notReady: () => string | undefined,
): Promise<Listener | undefined> {
  const { host, port } = config.metrics;
  if (metrics === undefined || port === undefined) return undefined;
  const { listenForMonitoring } = await import("../../metrics/listener.ts");
  return listenForMonitoring({ host, port, metrics, notReady });
}

/** `  metrics    http://127.0.0.1:9464/metrics`, for what a command tells at its start; empty where there is no listener. */
export function metricsLine(listener: Listener | undefined): string {
  return listener === undefined ? "" : `  metrics    ${listener.url}/metrics\n`;
}

import type { Config } from "../../config/load.ts";
import type { Metrics } from "../../metrics/metrics.ts";
import type { Listener } from "../../metrics/listener.ts";
import { programVersion } from "./version.ts";

/** Opens the metrics. Loads them lazily, because short commands need none. */
export async function startMetrics(): Promise<Metrics> {
  const { openMetrics } = await import("../../metrics/metrics.ts");
  return openMetrics(programVersion());
}

/**
 * Returns the metrics of a daemon's process: those of an embedded service in this process, or new ones if the configuration has
 * an address for them. Undefined if nothing serves them.
 */
export async function daemonMetrics(
  config: Config,
  service: { readonly metrics?: Metrics },
): Promise<Metrics | undefined> {
  return service.metrics ?? (config.metrics === undefined ? undefined : startMetrics());
}

/** Serves the metrics at the configured address, if any. Throws the errors of listening. */
export async function serveMetrics(
  config: Config,
  metrics: Metrics | undefined,
  notReady: () => string | undefined,
): Promise<Listener | undefined> {
  if (metrics === undefined || config.metrics === undefined) return undefined;
  const { listenForMonitoring } = await import("../../metrics/listener.ts");
  return listenForMonitoring({ ...config.metrics, metrics, notReady });
}

/** Line of a command's startup message: `  metrics    http://127.0.0.1:9464/metrics`; empty without a listener. */
export function metricsLine(listener: Listener | undefined): string {
  return listener === undefined ? "" : `  metrics    ${listener.url}/metrics\n`;
}

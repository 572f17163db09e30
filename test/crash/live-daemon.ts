import { readFileSync } from "node:fs";
import { loadConfig } from "../../src/config/load.ts";
import { type Daemon, openDaemon } from "../../src/sync/daemon.ts";

/** Which daemon of the sources is to run. */
export interface Orders {
  readonly configFile: string;
  readonly keyFile: string;
  /** One pass, or watching. */
  readonly mode: "sync" | "run";
  /** How far the service's lists may lag. Default: the daemon's own. */
  readonly listLagMs?: number;
}

/** Opens the daemon of a configuration that names a service. */
export function openOrdered(
  { configFile, keyFile, listLagMs }: Orders,
  step: (name: string) => void,
): Daemon {
  const config = loadConfig({ file: configFile, cwd: process.cwd(), env: process.env });
  if (!("apiUrl" in config.service)) throw new Error("the configuration names no service");
  const { apiUrl, dbUrl } = config.service;
  return openDaemon({
    stateDir: config.stateDir,
    service: {
      apiUrl,
      dbUrl,
      pauthkey: readFileSync(keyFile, "utf8").trim(),
      ...(listLagMs !== undefined && { listLagMs }),
    },
    sources: config.sources,
    sync: config.sync,
    step,
  });
}

/** Runs a daemon: to the end of its pass, or until the signal. Closes it. */
export async function runDaemon(daemon: Daemon, { mode }: Orders, signal: AbortSignal): Promise<void> {
  if (mode === "run") {
    await daemon.run({ signal });
    return;
  }
  try {
    await daemon.syncOnce({ signal });
  } finally {
    await daemon.close();
  }
}

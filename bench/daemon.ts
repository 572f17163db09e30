import type { DaemonActivity } from "../src/wire/daemon-files.ts";
import type { SyncConfig } from "../src/config/schema/sync.ts";
import { openDaemon, type Daemon } from "../src/sync/daemon.ts";
import { configOf } from "./known-tree.ts";

/** A daemon over one folder, in this process, as the program would open it for the embedded service. */
export function openBenchDaemon(
  root: string,
  stateDir: string,
  url: string,
  { onActivity, ...changes }: Partial<SyncConfig> & { onActivity?: (activity: DaemonActivity) => void } = {},
): Daemon {
  const { source, sync } = configOf(root);
  return openDaemon({
    stateDir,
    service: { apiUrl: url, dbUrl: url, pauthkey: "k" },
    sources: [source],
    sync: { ...sync, ...changes },
    ...(onActivity !== undefined && { onActivity }),
  });
}

import { ConfigFile } from "../../src/config/schema.ts";
import { CONCURRENCY_HOSTED, SYNC_CONSTANTS, type SyncConfig } from "../../src/config/schema/sync.ts";

/** The settings of a daemon of a hosted service, with changes. */
export function syncSettings(changes: Partial<SyncConfig> = {}): SyncConfig {
  return { ...SYNC_CONSTANTS, ...ConfigFile.parse({}).sync, concurrency: CONCURRENCY_HOSTED, ...changes };
}

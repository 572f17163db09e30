import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Logger } from "pino";
import type { Config } from "../../config/load.ts";
import { KbsyncError } from "../../lib/failure.ts";
import { openResourceLookup, type ResourceLookup } from "../../sync/operator/resource-lookup.ts";
import type { Tier } from "../../wire/primitives.ts";
import { type ReachedService, startEmbeddedService } from "../compose/embedded-service.ts";
import { openConfiguredDaemon } from "../compose/configured-daemon.ts";
import { makeStateFolder } from "../state/state-folder.ts";

/** A knowledge base of the same folders in another tier, for one evaluation. */
export interface Trial {
  readonly lookup: ResourceLookup;
  readonly service: ReachedService;
  /** Files that are not in it. */
  readonly missing: number;
  /** Ends its service and deletes all of it. */
  close(): Promise<void>;
}

/**
 * Syncs the sources of a configuration with the embedded service into a temporary state folder, all in one tier. The
 * sources and the state folder of the configuration stay as they are. Throws what a pass throws.
 */
export async function openTrial(
  config: Config,
  { modelDir }: Extract<Config["service"], { embedded: true }>,
  tier: Tier,
  log: Logger,
  signal: AbortSignal,
): Promise<Trial> {
  const path = mkdtempSync(join(tmpdir(), "kbsync-eval-"));
  const closers: (() => void | Promise<void>)[] = [() => rmSync(path, { recursive: true, force: true })];
  const close = async (): Promise<void> => {
    for (const one of closers.splice(0).toReversed()) await one();
  };
  try {
    const state = makeStateFolder(path);
    const sources = config.sources.map((source) => ({ ...source, collection: tier }));
    const service = { embedded: true, host: "127.0.0.1", port: 0, ...(modelDir && { modelDir }) } as const;
    const trial: Config = { ...config, sources, stateDir: path, service };
    const reached = await startEmbeddedService(trial, state, log);
    closers.push(() => reached.close());
    const daemon = openConfiguredDaemon(trial, state, reached, log, { levelOfDone: () => "debug" });
    let missing = 0;
    try {
      const { status } = await daemon.syncOnce({ signal });
      for (const { files, inAgreement } of status.sources) missing += files - inAgreement;
    } finally {
      await daemon.close();
    }
    const lookup = openResourceLookup(path);
    if (lookup === undefined) throw new KbsyncError("the trial has no ledger", { code: "nothing_synced" });
    closers.push(() => lookup.close());
    return { lookup, service: reached, missing, close };
  } catch (error) {
    await close();
    throw error;
  }
}

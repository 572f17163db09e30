import { statSync } from "node:fs";
import { resolve } from "node:path";
import { type Config, loadConfig } from "../../config/load.ts";
import { KbsyncError } from "../../lib/failure.ts";
import { openResourceLookup, type ResourceLookup } from "../../sync/operator/resource-lookup.ts";
import type { Context } from "../output/context.ts";
import { type CommonOptions, configRequest } from "../output/options.ts";

/** The folders that a state folder was last used with; none where its ledger cannot be read, which the command itself reports. */
export function ledgerFolders(stateDir: string): readonly string[] {
  const lookup = readableLookup(stateDir);
  const folders = lookup?.sources.map(({ path }) => path) ?? [];
  lookup?.close();
  return folders;
}

/** The ledger of a state folder for lookups, which the caller closes. Undefined: there is none, or it cannot be read. */
export function readableLookup(stateDir: string): ResourceLookup | undefined {
  try {
    return openResourceLookup(stateDir);
  } catch (error) {
    if (error instanceof KbsyncError) return undefined;
    throw error;
  }
}

/**
 * Loads the configuration for a command that works on sources. A folder named on the command line must be there: a
 * missing one is a slip of the keyboard, while a configured one may be a disk that is not mounted yet. `mayBeEmpty` says
 * whether a configuration without sources will do (default: it will not).
 */
export function loadSources(
  context: Context,
  dir: string | undefined,
  options: CommonOptions & { readonly port?: number },
  mayBeEmpty: (config: Config) => boolean = () => false,
): Config {
  const config = loadConfig(configRequest(context, options, dir));
  if (config.sources.length === 0 && !mayBeEmpty(config)) {
    const known = ledgerFolders(config.stateDir);
    const which = known.length === 0 ? "" : ` This state folder was last used with ${known.join(", ")}.`;
    throw new KbsyncError("there is no folder to watch", {
      code: "usage",
      hint: `Name one on the command line, or list it under sources in kbsync.config.json.${which}`,
    });
  }
  if (
    dir !== undefined &&
    statSync(resolve(context.cwd, dir), { throwIfNoEntry: false })?.isDirectory() !== true
  ) {
    throw new KbsyncError(`${dir} is no folder`, { code: "source_unusable", subject: dir });
  }
  return config;
}

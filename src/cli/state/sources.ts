import { resolve } from "node:path";
import { type Config, loadConfig, type NamedFolder } from "../../config/load.ts";
import { KbsyncError } from "../../lib/failure.ts";
import { openResourceLookup, type ResourceLookup } from "../../sync/operate/resource-lookup.ts";
import type { Context } from "../output/context.ts";
import { type CommonOptions, configRequest, type SourceOptions } from "../output/options.ts";
import { requireFolder } from "./folder-there.ts";

/** The folders that a state folder was last used with; none if its ledger cannot be read, which the command itself reports. */
export function ledgerFolders(stateDir: string): readonly string[] {
  return rememberedFolders(stateDir).map(({ path }) => path);
}

/** The same, each with its tier and owner in the ledger. */
export function rememberedFolders(stateDir: string): readonly NamedFolder[] {
  const lookup = readableLookup(stateDir);
  const folders = lookup?.sources.map(({ path, tier, ownerId }) => ({ path, collection: tier, ownerId }));
  lookup?.close();
  return folders ?? [];
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

/** Loads the configuration. If it names no folder, adds those that were synced with its state folder. */
export function loadWithFolders(context: Context, options: CommonOptions): Config {
  const config = loadConfig(configRequest(context, options));
  if (config.sources.length > 0) return config;
  return loadConfig(configRequest(context, options, rememberedFolders(config.stateDir)));
}

/**
 * Loads the configuration for a command that works on sources. A folder named on the command line must exist: a missing one is
 * a typing error, while a configured one may be on a disk that is not mounted yet. A folder that only the ledger knows retains
 * its tier and owner. `mayBeEmpty` permits a configuration without sources (default: it does not).
 */
export function loadSources(
  context: Context,
  dirs: readonly string[],
  options: SourceOptions & { readonly port?: number },
  mayBeEmpty: (config: Config) => boolean = () => false,
): Config {
  const config = loadConfig(configRequest(context, options));
  const named = namedFolders(context, dirs, options, config);
  if (named.length > 0) return loadConfig(configRequest(context, options, named));
  if (config.sources.length > 0 || mayBeEmpty(config)) return config;
  const known = ledgerFolders(config.stateDir);
  const which = known.length === 0 ? "" : ` This state folder was last used with ${known.join(", ")}.`;
  throw new KbsyncError("there is no folder to sync", {
    code: "usage",
    hint: `Name one on the command line, or list it under sources in kbsync.config.json.${which}`,
  });
}

/** The folders with the options of the command line; the configured folders if it names none but has options for them. */
function namedFolders(
  { cwd }: Context,
  dirs: readonly string[],
  { tier, newTier }: SourceOptions,
  { sources, stateDir }: Config,
): readonly NamedFolder[] {
  const asked = {
    ...(tier && { collection: tier }),
  };
  const configured = sources.map(({ absolutePath }) => absolutePath);
  if (dirs.length === 0)
    return Object.keys(asked).length === 0 ? [] : configured.map((path) => ({ path, ...asked }));
  const remembered = rememberedFolders(stateDir);
  return dirs.map((dir) => {
    const path = resolve(cwd, dir);
    requireFolder(path);
    if (configured.includes(path)) return { path, ...asked };
    const known = remembered.find((each) => each.path === path) ?? (newTier && { collection: newTier });
    return { ...known, path, ...asked };
  });
}

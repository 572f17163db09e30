import { resolve } from "node:path";
import { type Config, loadConfig } from "../../config/load.ts";
import { shellWord } from "../../lib/shell-word.ts";
import type { Context } from "../output/context.ts";
import { ledgerFolders, loadSources, rememberedFolders } from "../state/sources.ts";
import { type CommonOptions, configRequest } from "../output/options.ts";

/**
 * The configuration for `kbsync verify` without a daemon. A folder on the command line is a source as for
 * `kbsync sync`; if none is named, the folders that are left out are reported. Throws as `loadSources` does.
 */
export function syncedSources(context: Context, typed: string | undefined, options: CommonOptions): Config {
  const folder = typed === undefined ? undefined : resolve(context.cwd, typed);
  if (folder === undefined) {
    const config = loadSources(context, [], options);
    nameOtherSources(context, "verify", config);
    return config;
  }
  const config = loadConfig(configRequest(context, options));
  if (config.sources.some(({ absolutePath }) => absolutePath === folder)) return config;
  const known = ledgerFolders(config.stateDir);
  // All of them; otherwise the others would count as removed.
  return known.includes(folder)
    ? withFolders(context, options, known)
    : loadSources(context, [folder], options);
}

/** Reports on standard error which folders the state folder knows and the configuration does not name. */
export function nameOtherSources(context: Context, command: string, { sources, stateDir }: Config): void {
  const used = sources.map(({ absolutePath }) => absolutePath);
  const others = ledgerFolders(stateDir).filter((path) => !used.includes(path));
  const [first] = others;
  if (first === undefined) return;
  const using =
    used.length === 0
      ? "the configuration names no folder"
      : `using ${used.join(", ")} from the configuration`;
  context.stderr.write(
    `kbsync: ${using}; the state folder was last used with ${others.join(", ")}: ` +
      `\`kbsync ${command} ${shellWord(first)}\` uses that\n`,
  );
}

/** The sources of folders: the configured ones, or else with the defaults. */
function withFolders(context: Context, options: CommonOptions, folders: readonly string[]): Config {
  const config = loadConfig(configRequest(context, options));
  const remembered = rememberedFolders(config.stateDir);
  const configured = new Set(config.sources.map(({ absolutePath }) => absolutePath));
  const named = folders.map(
    (path) => remembered.find((known) => known.path === path && !configured.has(path)) ?? { path },
  );
  const { sources } = loadConfig(configRequest(context, options, named));
  return { ...config, sources };
}

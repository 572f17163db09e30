import type { Config } from "../../config/load.ts";

/** The differences between two configurations, each named as in the file. */
export interface ConfigChange {
  /** Takes effect in a running daemon. */
  readonly applied: readonly string[];
  /** Takes effect at the next start. */
  readonly pending: readonly string[];
}

/** The settings that a running daemon takes over. All others are read once, at the start. */
const LIVE_IN_DAEMON: ReadonlySet<string> = new Set(["sources", "sync"]);
/** The settings that a running service takes over. */
export const LIVE_IN_SERVICE: ReadonlySet<string> = new Set();
/** The path of the file is not a setting; sources are compared by their folders, and replaced ones are not in force. */
const NO_SETTING = new Set<string>(["file", "sources", "replacedFolders"]);

/** Compares the configuration in force with one that was read again; `live` are the keys that can take effect now. Pure. */
export function compareConfigs(
  before: Config,
  after: Config,
  live: ReadonlySet<string> = LIVE_IN_DAEMON,
): ConfigChange {
  const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])].filter(
    (key) => !NO_SETTING.has(key),
  ) as (keyof Config)[]; // keys of two Configs
  const changed = (now: boolean): string[] => [
    ...(live.has("sources") === now ? sourceChanges(before, after) : []),
    ...keys
      .filter((key) => live.has(key) === now)
      .flatMap((key) => differences(before[key], after[key], key)),
  ];
  return { applied: changed(true), pending: changed(false) };
}

/**
 * The configuration to continue with: settings that may change while a daemon runs come from the new one, the others from the
 * old one. Pure.
 */
export function liveConfig(before: Config, after: Config): Config {
  return { ...before, file: after.file, sources: after.sources, sync: after.sync };
}

function sourceChanges(before: Config, after: Config): string[] {
  const old = new Map(before.sources.map((source) => [source.absolutePath, source]));
  const now = new Map(after.sources.map((source) => [source.absolutePath, source]));
  const gone = [...old.keys()].filter((path) => !now.has(path)).map((path) => `source ${path} removed`);
  const here = [...now].flatMap(([path, source]) => {
    const known = old.get(path);
    if (known === undefined) return [`source ${path} added`];
    const keys = differences(known, source, "");
    return keys.length === 0 ? [] : [`source ${path}: ${keys.join(", ")}`];
  });
  return [...here, ...gone];
}

/** Paths of the values that differ; lists are compared as a whole. */
function differences(before: unknown, after: unknown, path: string): string[] {
  if (isRecord(before) && isRecord(after)) {
    return [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap((key) =>
      differences(before[key], after[key], path === "" ? key : `${path}.${key}`),
    );
  }
  return JSON.stringify(before) === JSON.stringify(after) ? [] : [path];
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

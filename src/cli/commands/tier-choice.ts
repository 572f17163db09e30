import { existsSync } from "node:fs";
import { availableParallelism, totalmem } from "node:os";
import { resolve } from "node:path";
import { type Config, loadConfig } from "../../config/load.ts";
import type { Tier } from "../../wire/primitives.ts";
import type { Context } from "../output/context.ts";
import { configRequest, type SourceOptions } from "../output/options.ts";
import { rememberedFolders } from "../state/sources.ts";

/** The method and the cost of each tier. */
export const TIER_WORDS: Readonly<Record<Tier, string>> = {
  fastest: "by words, at once",
  moderate: "by words at once, meaning later",
  high_accuracy: "as moderate, and by single sentences; meaning takes twice as long",
};

/** Below this the model and the operating system have too little room. */
const MEMORY_BYTES_MIN = 2 * 1024 ** 3;
/** With this many processors the costliest tier embeds about as fast as the middle one does with four. */
const PROCESSORS_MANY = 8;

/** The facts that decide which tier suits a machine. */
export interface Machine {
  readonly processors: number;
  readonly memoryBytes: number;
  readonly hasModel: boolean;
}

/** Returns the best tier that a machine runs well. Pure. */
export function bestTier({ processors, memoryBytes, hasModel }: Machine): Tier {
  if (!hasModel || processors < 2 || memoryBytes < MEMORY_BYTES_MIN) return "fastest";
  return processors >= PROCESSORS_MANY ? "high_accuracy" : "moderate";
}

/** Describes this machine. Any service that `kb.embedding` names counts as a model; a folder must hold one. */
export async function thisMachine({ kb }: Partial<Pick<Config, "kb">>): Promise<Machine> {
  const { readConfiguredModel } = await import("../../kb/embed/model-files.ts");
  const { baseUrl, model } = kb?.embedding ?? {};
  return {
    processors: availableParallelism(),
    memoryBytes: totalmem(),
    hasModel: baseUrl !== undefined || "folder" in (await readConfiguredModel(model)),
  };
}

/**
 * Chooses the tier of folders that are synced for the first time, if neither the command line nor the configuration names one: the
 * best one that this machine runs well. Returns the options with it.
 */
export async function withChosenTier<O extends SourceOptions>(
  context: Context,
  dirs: readonly string[],
  options: O,
): Promise<O> {
  if (options.tier !== undefined || dirs.length === 0) return options;
  const config = loadConfig(configRequest(context, options));
  const known = new Set([
    ...config.sources.map(({ absolutePath }) => absolutePath),
    ...rememberedFolders(config.stateDir).map(({ path }) => path),
  ]);
  const folders = dirs.map((dir) => resolve(context.cwd, dir));
  // Loading the sources refuses a missing folder.
  if (folders.every((folder) => known.has(folder)) || !folders.every((folder) => existsSync(folder)))
    return options;
  return { ...options, newTier: bestTier(await thisMachine(config)) };
}

import { availableParallelism, totalmem } from "node:os";
import { resolve } from "node:path";
import { type Config, loadConfig } from "../../config/load.ts";
import type { Tier } from "../../wire/primitives.ts";
import type { Context } from "../output/context.ts";
import { configRequest, type SourceOptions } from "../output/options.ts";
import { rememberedFolders } from "../state/sources.ts";
import { onTerminal } from "./interview.ts";
import { askTier } from "./tier-question.ts";

/** Below this the model and the operating system have too little room. */
const MEMORY_BYTES_MIN = 2 * 1024 ** 3;
/** Processors from which the costliest tier embeds about as fast as the middle one does on four. */
const PROCESSORS_MANY = 8;

/** What decides which tier suits a machine. */
export interface Machine {
  readonly processors: number;
  readonly memoryBytes: number;
  readonly hasModel: boolean;
}

/** Returns the best tier that a machine does well. Pure. */
export function bestTier({ processors, memoryBytes, hasModel }: Machine): Tier {
  if (!hasModel || processors < 2 || memoryBytes < MEMORY_BYTES_MIN) return "fastest";
  return processors >= PROCESSORS_MANY ? "high_accuracy" : "moderate";
}

/** Describes this machine. A configured model counts, wherever it is. */
export async function thisMachine({
  kb,
  service,
}: Partial<Pick<Config, "kb" | "service">>): Promise<Machine> {
  const { packagedModelFolder } = await import("../../kb/embed/model-files.ts");
  const modelDir = service !== undefined && "embedded" in service ? service.modelDir : undefined;
  const folder = modelDir ?? packagedModelFolder();
  return {
    processors: availableParallelism(),
    memoryBytes: totalmem(),
    hasModel: kb?.embedding !== undefined || folder !== undefined,
  };
}

/**
 * Asks for the tier of folders that are synced for the first time, if neither the command line nor the configuration has
 * one and a person sits at the terminal. Returns the options with the answer.
 */
export async function withChosenTier<O extends SourceOptions>(
  context: Context,
  dirs: readonly string[],
  options: O,
): Promise<O> {
  if (options.tier !== undefined || !context.stdout.isTTY || !process.stdin.isTTY) return options;
  const config = loadConfig(configRequest(context, options));
  const known = new Set([
    ...config.sources.map(({ absolutePath }) => absolutePath),
    ...rememberedFolders(config.stateDir).map(({ path }) => path),
  ]);
  const folders = dirs.map((dir) => resolve(context.cwd, dir));
  if (folders.length === 0 || folders.some((folder) => known.has(folder))) return options;
  const tier = bestTier(await thisMachine(config));
  return { ...options, tier: await onTerminal(context, (ask, say) => askTier(ask, say, tier)) };
}

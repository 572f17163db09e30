import { readFileSync } from "node:fs";
import type { Logger } from "pino";
import { z } from "zod";
import type { Config } from "../../config/load.ts";
import type { ServiceOptions } from "../../kb/options.ts";
import { embedderOf } from "./models.ts";
import { writeStateFile } from "../state/state-folder.ts";

/** Models remembered: those of the last few changes. */
const REMEMBERED_MAX = 8;

/** How a model was opened; the key's file is named, its content is never kept. */
const Recipe = z.object({
  embedding: z.object({
    baseUrl: z.string().optional(),
    model: z.string().optional(),
    apiKeyFile: z.string().optional(),
    dimensions: z.int().optional(),
  }),
  modelDir: z.string().optional(),
});
type Recipe = z.infer<typeof Recipe>;
const Recipes = z.record(z.string(), Recipe);

type Opened = Required<Pick<ServiceOptions, "openEmbedder" | "openEarlierEmbedder">>;

/**
 * The embedding model of the configuration, and the ones before it: how each was opened is noted in `file` under its
 * fingerprint, so that after a change of the configuration the earlier one can serve until the new one has all vectors.
 * Throws `key_invalid`.
 */
export function rememberedEmbedder(
  file: string,
  embedding: Config["kb"]["embedding"],
  modelDir: string | undefined,
  log: Logger,
): Opened {
  const open = embedderOf(embedding, modelDir, log);
  const recipe: Recipe = Recipe.parse({ embedding, modelDir });
  return {
    openEmbedder: async () => {
      const found = await open();
      if ("fingerprint" in found) note(file, found.fingerprint, recipe);
      return found;
    },
    openEarlierEmbedder: async (fingerprint) => {
      const known = readRecipes(file)[fingerprint];
      // One from before notes were taken was the local model.
      return embedderOf(known?.embedding ?? {}, known?.modelDir, log)();
    },
  };
}

function note(file: string, fingerprint: string, recipe: Recipe): void {
  const known = readRecipes(file);
  if (JSON.stringify(known[fingerprint]) === JSON.stringify(recipe)) return;
  const { [fingerprint]: _, ...others } = known;
  const latest = Object.entries(others).slice(-(REMEMBERED_MAX - 1));
  writeStateFile(file, `${JSON.stringify(Object.fromEntries([...latest, [fingerprint, recipe]]))}\n`);
}

function readRecipes(file: string): z.infer<typeof Recipes> {
  try {
    return Recipes.parse(JSON.parse(readFileSync(file, "utf8")));
  } catch {
    return {}; // none were noted, or a crash left an unreadable file: then earlier models cannot be opened
  }
}

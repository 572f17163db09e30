import { readFileSync } from "node:fs";
import type { Logger } from "pino";
import { z } from "zod";
import type { Config } from "../../config/load.ts";
import type { ServiceOptions } from "../../kb/options.ts";
import { embedderOf } from "./models.ts";
import { writeStateFile } from "../state/state-folder.ts";

/** Remembered models. */
const REMEMBERED_MAX = 8;

/** How a model was opened. Holds the path of the key file, never the key. */
const Recipe = z.object({
  baseUrl: z.string().optional(),
  model: z.string().optional(),
  apiKeyFile: z.string().optional(),
});
type Recipe = z.infer<typeof Recipe>;
const Recipes = z.record(z.string(), Recipe);

type Opened = Required<Pick<ServiceOptions, "openEmbedder" | "openEarlierEmbedder">>;

/**
 * Opens the configured embedding model and earlier ones. Records in `file`, by fingerprint, how each was opened, so that
 * after a change of the configuration the earlier model serves until the new one has all vectors. Throws `key_invalid`.
 */
export function rememberedEmbedder(file: string, embedding: Config["kb"]["embedding"], log: Logger): Opened {
  const open = embedderOf(embedding, log);
  const recipe: Recipe = Recipe.parse(embedding);
  return {
    openEmbedder: async (onTokens) => {
      const found = await open(onTokens);
      if ("fingerprint" in found) note(file, found.fingerprint, recipe);
      return found;
    },
    openEarlierEmbedder: async (fingerprint, onTokens) => {
      // A model without a record is the packaged one.
      return embedderOf(readRecipes(file)[fingerprint] ?? {}, log)(onTokens);
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
    return {}; // missing, or unreadable after a crash: earlier models cannot be opened
  }
}

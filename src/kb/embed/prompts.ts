import { hash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { codeOf } from "../../lib/failure.ts";

/** The prompts that a model expects before queries and before texts: E5 has `query: ` and `passage: `. */
export interface Prompts {
  readonly query: string;
  readonly passage: string;
}

/** The file in which sentence-transformers keep prompts. */
export const PROMPTS_FILE = "config_sentence_transformers.json";

/** A prompt is a few words. A long one would leave no room for the text. */
const Prompt = z.string().max(300).default("");
const PromptsConfig = z.object({
  prompts: z.object({ query: Prompt, passage: Prompt.optional(), document: Prompt.optional() }).optional(),
});

/** Reads the prompts of a model folder; undefined: the model has none. Throws if the file cannot be understood. */
export async function readPrompts(folder: string): Promise<Prompts | undefined> {
  let text: string;
  try {
    text = await readFile(join(folder, PROMPTS_FILE), "utf8");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
  const { prompts } = PromptsConfig.parse(JSON.parse(text));
  if (prompts === undefined) return undefined;
  // The library renamed the one of texts.
  const passage = prompts.document || prompts.passage || "";
  return prompts.query === "" && passage === "" ? undefined : { query: prompts.query, passage };
}

/** The part of a fingerprint that prompts add: other prompts give other vectors. */
export function promptsMark(prompts: Prompts | undefined): string {
  if (prompts === undefined) return "";
  return `/prompts-${hash("sha256", JSON.stringify([prompts.query, prompts.passage]), "hex").slice(0, 8)}`;
}

import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { extname, join } from "node:path";
import type { Config } from "../../config/load.ts";
import { mainLanguage } from "../../lib/language.ts";
import { openResourceLookup } from "../../sync/operator/resource-lookup.ts";

/** A folder whose main language the packaged model does not know. */
export interface ForeignFolder {
  readonly path: string;
  /** English name of the language. */
  readonly language: string;
}

/** The language that the packaged model was trained on. */
const MODEL_LANGUAGE = "English";
/** Extensions of files whose bytes are their text. */
const TEXT = new Set([".md", ".markdown", ".txt", ".rst", ".adoc", ".org"]);
/** Maximum number of ledger rows to consider: reading them takes some 50 ms. */
const ROWS_MAX = 50_000;
/** Files to read in a folder, and bytes of each: enough prose after a header. */
const FILES_MAX = 24;
const BYTES_MAX = 8192;
/** Time for all of it: a file system may not answer. */
const READ_MS_MAX = 2000;

/**
 * Finds the folders that are searched by meaning with the packaged model and are mostly in another language than English, from
 * the beginnings of a few synced text files. Reports nothing for folders without text files, or for other models, whose
 * languages are unknown.
 */
export async function foreignFolders(
  stateDir: string,
  { service, kb, sources }: Pick<Config, "service" | "kb" | "sources">,
): Promise<readonly ForeignFolder[]> {
  const usesPackagedModel =
    !("apiUrl" in service) && service.modelDir === undefined && kb.embedding.baseUrl === undefined;
  if (!usesPackagedModel) return [];
  const folders = sources.filter(({ collection }) => collection !== "fastest");
  const paths = textFiles(stateDir, new Set(folders.map(({ absolutePath }) => absolutePath)));
  const deadline = AbortSignal.timeout(READ_MS_MAX);
  const found: ForeignFolder[] = [];
  for (const [path, files] of paths) {
    const language = mainLanguage(await beginningsOf(spread(files), deadline));
    if (language !== undefined && language !== MODEL_LANGUAGE) found.push({ path, language });
  }
  return found;
}

/** Returns the paths of synced text files by folder. */
function textFiles(stateDir: string, folders: ReadonlySet<string>): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>();
  const lookup = folders.size === 0 ? undefined : openResourceLookup(stateDir);
  if (lookup === undefined) return found;
  try {
    let rows = 0;
    for (const { source, path } of lookup.files()) {
      if (++rows > ROWS_MAX) break;
      if (!folders.has(source) || !TEXT.has(extname(path).toLowerCase())) continue;
      const files = found.get(source) ?? [];
      files.push(join(source, path));
      found.set(source, files);
    }
    return found;
  } finally {
    lookup.close();
  }
}

function spread(files: readonly string[]): readonly string[] {
  const step = Math.max(1, files.length / FILES_MAX);
  return files.filter((_, at) => Math.floor(at / step) !== Math.floor((at - 1) / step));
}

/** Reads the beginnings of files. Omits those that cannot be read, and the others after the deadline. */
async function beginningsOf(files: readonly string[], deadline: AbortSignal): Promise<string[]> {
  const ended = new Promise<undefined>((resolve) => {
    if (deadline.aborted) resolve(undefined);
    deadline.addEventListener("abort", () => resolve(undefined), { once: true });
  });
  const texts: string[] = [];
  for (const file of files) {
    const text = await Promise.race([beginningOf(file).catch(() => undefined), ended]);
    if (deadline.aborted) break;
    if (text !== undefined) texts.push(text);
  }
  return texts;
}

async function beginningOf(file: string): Promise<string> {
  // Does not wait for the writer of a pipe that has taken the file's place.
  await using handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK);
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(BYTES_MAX), 0, BYTES_MAX, 0);
  return buffer.toString("utf8", 0, bytesRead);
}

/** Explains what a folder's language means for searches. */
export function foreignWords({ language }: ForeignFolder): string {
  return `mostly in ${language}, while the packaged model knows ${MODEL_LANGUAGE} alone: searches find less by meaning`;
}

import { realpathSync, statSync } from "node:fs";
import { withSource, withoutSource } from "../../config/edit.ts";
import { type Config, loadConfig } from "../../config/load.ts";
import { KbsyncError } from "../../lib/failure.ts";
import { pathBelow } from "../../lib/path-below.ts";
import type { NewFolder } from "../../wire/daemon-folders.ts";
import type { Context } from "../output/context.ts";
import { editConfig } from "./config-file.ts";
import { requireFolder } from "./folder-there.ts";

/**
 * Adds folders, as absolute paths, to a configuration file. Folders that it already has stay unchanged. Throws
 * `source_unusable`, `source_overlap`, and what `editConfig` throws.
 */
export function addFolders(
  file: string,
  folders: readonly NewFolder[],
  stateDir: string,
  context: Pick<Context, "cwd" | "env">,
): void {
  for (const { path } of folders) checkFolder(path, stateDir);
  editConfig(file, context, (text) => {
    const known = new Set(configuredPaths(file, context));
    return folders
      .filter(({ path }) => !known.has(path))
      .reduce((edited, { tier, ...folder }) => {
        const source = { ...folder, ...(tier && { collection: tier }) };
        return withSource(edited, source);
      }, text);
  });
}

/** Removes a folder from a configuration file. Returns false if the file does not name it. Throws what `editConfig` throws. */
export function removeFolder(file: string, folder: string, context: Pick<Context, "cwd" | "env">): boolean {
  let isNamed = false;
  editConfig(file, context, (text) => {
    const index = configuredPaths(file, context).indexOf(folder);
    isNamed = index >= 0;
    return isNamed ? withoutSource(text, index) : text;
  });
  return isNamed;
}

/** Folders without documents of people: the whole machine, and the kernel's virtual files. */
const NO_DOCUMENTS: ReadonlySet<string> = new Set(["/", "/proc", "/sys", "/dev"]);

/**
 * Refuses a folder that cannot become a source, regardless of the others. Throws `source_unusable`, and `source_overlap` for
 * one in the state folder, where the daemon itself writes.
 */
export function checkFolder(path: string, stateDir: Config["stateDir"]): void {
  requireFolder(path);
  const real = realpathSync(path);
  if (NO_DOCUMENTS.has(real) || ["/proc/", "/sys/"].some((start) => real.startsWith(start))) {
    throw new KbsyncError(`${path} is the system's, not a folder of documents`, {
      code: "source_unusable",
      subject: path,
      hint: "Name a folder with documents in it.",
    });
  }
  const state =
    statSync(stateDir, { throwIfNoEntry: false }) === undefined ? stateDir : realpathSync(stateDir);
  if (pathBelow(state, real) !== undefined) {
    throw new KbsyncError(`${path} lies inside the state folder ${stateDir}`, {
      code: "source_overlap",
      subject: path,
      hint: "The daemon writes there itself. Name a folder elsewhere.",
    });
  }
}

function configuredPaths(file: string, { cwd, env }: Pick<Context, "cwd" | "env">): string[] {
  return loadConfig({ file, cwd, env }).sources.map(({ absolutePath }) => absolutePath);
}

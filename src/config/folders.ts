import { realpathSync } from "node:fs";
import { basename, dirname, join, sep } from "node:path";
import { KbsyncError } from "../lib/failure.ts";
import { pathBelow } from "../lib/path-below.ts";
import { filesOf } from "./schema/files.ts";
import type { ServiceConfig } from "./schema.ts";

/** The folders of other sources below a source, relative to it. Their files are theirs alone. */
export function innerFolders(source: string, folders: readonly string[]): readonly string[] {
  const real = realPath(source);
  const below = folders.flatMap((folder) => [
    pathBelow(source, folder) ?? [],
    pathBelow(real, realPath(folder)) ?? [],
  ]);
  return [...new Set(below.flat().filter((path) => path !== ""))];
}

/**
 * Throws `source_overlap` if two sources have one folder, or if a source contains the state folder or the one of uploaded files, whose writes
 * would be synced for ever.
 */
export function checkFolders({
  sources,
  stateDir,
  service,
}: {
  readonly sources: readonly { readonly absolutePath: string }[];
  readonly stateDir: string;
  readonly service: ServiceConfig;
}): void {
  const files = filesOf(service);
  const roots = sources.map(({ absolutePath }) => ({ path: absolutePath, real: realPath(absolutePath) }));
  const realState = realPath(stateDir);
  for (const [index, { path, real }] of roots.entries()) {
    const other = roots.find((root, at) => at < index && root.real === real);
    if (other !== undefined) {
      throw new KbsyncError(`the sources ${other.path} and ${path} are one folder`, {
        code: "source_overlap",
        subject: path,
        hint: "List it once. A source may lie inside another one: its files are then its own.",
      });
    }
    if (liesIn(realState, real)) {
      throw new KbsyncError(`the state folder ${stateDir} lies inside the source ${path}`, {
        code: "source_overlap",
        subject: stateDir,
        hint: "Choose a stateDir elsewhere, or one whose name begins with a dot.",
      });
    }
    if (files?.kind === "folder" && liesIn(realPath(files.path), real)) {
      throw new KbsyncError(`the folder of uploaded files ${files.path} lies inside the source ${path}`, {
        code: "source_overlap",
        subject: files.path,
        hint: "Choose a folder elsewhere in service.files.",
      });
    }
  }
}

/**
 * Throws `source_id_shared` for two sources of one owner and collection with the same id: their markers would be the
 * same.
 */
export function checkIds(
  sources: readonly {
    readonly absolutePath: string;
    readonly id?: string | undefined;
    readonly ownerId: string;
    readonly collection: string;
  }[],
): void {
  const seen = new Map<string, string>();
  for (const { absolutePath, id = basename(absolutePath), ownerId, collection } of sources) {
    const key = JSON.stringify([id, ownerId, collection]);
    const other = seen.get(key);
    if (other !== undefined) {
      throw new KbsyncError(`the sources ${other} and ${absolutePath} have one id, ${id}`, {
        code: "source_id_shared",
        subject: absolutePath,
        hint: "Both have the same owner and collection, so each would take the other's documents for its own: give one of them another `id`.",
      });
    }
    seen.set(key, absolutePath);
  }
}

/**
 * Returns the source folder that contains a path, existing or not: what is written there becomes documents. Undefined for
 * a path outside all sources or below a hidden folder, which is never synced. All paths are absolute.
 */
export function sourceAround(path: string, folders: readonly string[]): string | undefined {
  const real = realPath(path);
  return folders.find((folder) => liesIn(real, realPath(folder)));
}

/** Whether a scan of a folder covers a path: inside it, and in no hidden folder. Both without symbolic links. */
function liesIn(path: string, folder: string): boolean {
  const below = pathBelow(folder, path);
  return below !== undefined && !below.split(sep).some((part) => part.startsWith("."));
}

/** Resolves symbolic links as far as the path exists, so that two spellings of one folder become equal. */
export function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    const parent = dirname(path);
    return parent === path ? path : join(realPath(parent), basename(path));
  }
}

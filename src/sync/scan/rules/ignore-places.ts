import { statSync } from "node:fs";
import { join } from "node:path";
import { pathBelow } from "../../../lib/path-below.ts";
import type { FolderPath } from "../../plan/model.ts";
import type { Place } from "./ignore-reader.ts";
import type { IgnoreSettling } from "./ignore-settling.ts";
import { excludeFileOf, GIT_IGNORE, isWorkTree, ownPatternsFor } from "./work-tree.ts";

/** Name of the ignore files: gitignore syntax, at the root and in any folder below it. */
export const IGNORE_FILE = ".kbsyncignore";

/** The `.kbsyncignore` of a folder. */
export function ownPlace(root: string, folder: FolderPath, shown: string, boundTo: FolderPath): Place {
  const file = `${shown}${IGNORE_FILE}`;
  return {
    kind: "own",
    folder: `${root}/${folder}`,
    absolute: `${root}/${file}`,
    shown: file,
    boundTo,
    key: folder,
    unwatched: [],
  };
}

/**
 * The ignore files of Git in a folder, the weakest first. At the top of a work tree, a person's own one and that of the
 * repository come before that of the folder.
 */
export function gitPlaces(
  folder: string,
  above: string,
  boundTo: FolderPath,
  settling: IgnoreSettling | undefined,
): Place[] {
  const placeOf = (absolute: string, name: string, more: Partial<Place> = {}): Place => {
    const key = `${above}${name}`;
    return { kind: "git", folder, absolute, shown: key, boundTo, key, unwatched: [absolute], ...more };
  };
  const isWatched = !above.startsWith("../");
  const own = placeOf(join(folder, GIT_IGNORE), GIT_IGNORE, isWatched ? { unwatched: [] } : {});
  const exclude = placeOf(excludeFileOf(folder), EXCLUDE);
  const hasRules = [PERSONS, EXCLUDE].some((name) => settling?.hasRules(`${above}${name}`) === true);
  if (!isWorkTree(folder) && !hasRules) return [own];
  const { file, namedBy } = ownPatternsFor(folder);
  return [placeOf(file, PERSONS, { shown: file, unwatched: [file, ...namedBy] }), exclude, own];
}

const EXCLUDE = ".git/info/exclude";
/** Stands for the file of `core.excludesFile` in the ledger. */
const PERSONS = ".git/core.excludesFile";

/** The folder of the ignore file that a key of the ledger stands for. */
export function folderOfKey(key: string): FolderPath {
  return key.replace(/(?:^|\/)(?:\.gitignore|\.git\/info\/exclude|\.git\/core\.excludesFile)$/, "");
}

/** The key by which a source at `root` knows the ignore file of a key of the source at `from`; undefined: it does not count there. */
export function keySeenFrom(root: string, from: string, key: string): string | undefined {
  const folder = join(from, folderOfKey(key));
  const name = key.slice(folderOfKey(key).length).replace(/^\//, "");
  const below = pathBelow(root, folder);
  if (below !== undefined) return [below, name].filter((part) => part !== "").join("/");
  const above = pathBelow(folder, root);
  return above === undefined || name === "" ? undefined : `${"../".repeat(above.split("/").length)}${name}`;
}

/** Changes when the file does; "" for none. */
export function stampOf(file: string): string {
  try {
    const stats = statSync(file, { throwIfNoEntry: false });
    return stats === undefined ? "" : `${stats.ino} ${stats.size} ${stats.mtimeMs} ${stats.ctimeMs}`;
  } catch {
    return "";
  }
}

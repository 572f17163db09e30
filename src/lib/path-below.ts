import { relative, sep } from "node:path";

/** Returns the path relative to a folder, "" for the folder itself, undefined for a path outside. Both are absolute. */
export function pathBelow(folder: string, path: string): string | undefined {
  const below = relative(folder, path);
  return below === ".." || below.startsWith(`..${sep}`) ? undefined : below;
}

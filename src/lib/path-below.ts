import { relative, sep } from "node:path";

/** Returns the path relative to a folder, "" for the folder itself, undefined for a path outside. Both are absolute. */
export function pathBelow(folder: string, path: string): string | undefined {
  const below = relative(folder, path);
  return below === ".." || below.startsWith(`..${sep}`) ? undefined : below;
}

/** Returns the item whose folder contains a path, with the path below it: of nested folders the innermost. */
export function innermost<T>(
  items: Iterable<T>,
  folderOf: (item: T) => string,
  path: string,
): { readonly item: T; readonly below: string } | undefined {
  let best: { readonly item: T; readonly below: string } | undefined;
  for (const item of items) {
    const below = pathBelow(folderOf(item), path);
    if (below !== undefined && (best === undefined || below.length < best.below.length))
      best = { item, below };
  }
  return best;
}

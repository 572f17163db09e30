import type { RelativePath } from "./model.ts";

/** Above this number, parts are merged into the folders above them. */
export const UNSEARCHED_MAX = 100;

/**
 * Returns the parts of a folder whose files have not been matched yet: those of `unread` at or below a part of
 * `before`. The result is the smallest list that covers them, and no part lies below another. "" is the whole folder.
 */
export function unsearchedParts(
  unread: readonly RelativePath[],
  before: readonly RelativePath[],
): readonly RelativePath[] {
  const within = unread.flatMap((path) =>
    isWithin(path, before) ? [path] : before.filter((part) => isWithin(part, [path])),
  );
  let parts = outermost(within);
  while (parts.length > UNSEARCHED_MAX) {
    const depth = Math.max(...parts.map(depthOf));
    parts = outermost(parts.map((path) => (depthOf(path) === depth ? folderOf(path) : path)));
  }
  return parts;
}

/** Reports whether a path is at or below one of the parts. */
export function isWithin(path: RelativePath, parts: readonly RelativePath[]): boolean {
  return parts.some((part) => part === "" || path === part || path.startsWith(`${part}/`));
}

/** The same as a test of many paths against any number of parts. */
export function withinTest(parts: Iterable<RelativePath>): (path: RelativePath) => boolean {
  const all = new Set(parts);
  return (path) => {
    for (let at = path; !all.has(at); at = folderOf(at)) if (at === "") return false;
    return true;
  };
}

function outermost(paths: readonly RelativePath[]): readonly RelativePath[] {
  const isWithinAny = withinTest(paths);
  return [...new Set(paths)].filter((path) => path === "" || !isWithinAny(folderOf(path)));
}

function depthOf(path: RelativePath): number {
  return path === "" ? 0 : path.split("/").length;
}

function folderOf(path: RelativePath): RelativePath {
  return path.slice(0, Math.max(0, path.lastIndexOf("/")));
}

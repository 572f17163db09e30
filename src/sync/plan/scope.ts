import type { RelativePath, Scan } from "./model.ts";

/** Returns a test for whether a path is in the scan's scope: at or below one of its paths. */
export function scopeTest(scope: readonly RelativePath[] | undefined): (path: RelativePath) => boolean {
  if (scope === undefined) return () => true;
  return underAny(new Set(scope));
}

/** Returns a test for whether the scan could not read a path, so that its absence proves nothing. */
export function unseenTest(scan: Scan): (path: RelativePath) => boolean {
  if (scan.unreadable.length === 0) return () => false;
  if (scan.unreadable.some(({ path }) => path === "")) return () => true;
  return underAny(new Set(scan.unreadable.map(({ path }) => path)));
}

function underAny(folders: ReadonlySet<string>): (path: RelativePath) => boolean {
  return (path) => {
    for (let end = path.length; end > 0; end = path.lastIndexOf("/", end - 1)) {
      if (folders.has(path.slice(0, end))) return true;
    }
    return false;
  };
}

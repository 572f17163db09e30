import { join } from "node:path/posix";
import type { Mount } from "../lib/mount-table.ts";

/**
 * Which of the folders that are mounted by themselves show another folder now than before, each with its new root. One
 * that is not mounted by itself any more is not told. Pure.
 */
export function movedMounts(
  before: readonly Mount[],
  now: readonly Mount[],
  paths: readonly string[],
): { readonly path: string; readonly root: string }[] {
  return paths.flatMap((path) => {
    const was = uppermost(before, path);
    const is = uppermost(now, path);
    if (was === undefined || is === undefined || was.device !== is.device || was.root === is.root) return [];
    return [{ path, root: is.root }];
  });
}

/**
 * Which folders another mount has come to since `before`, at the folder or above it, with the path of the mount. A unit
 * does not see what it holds, or sees it writable. `missing` are those that were not there. A mount that shows what the
 * unit shows there anyway (a disk that comes and goes by autofs) is not told, nor one at a folder that the unit shows
 * without a mount of its own. Pure.
 */
export function lateMounts(
  before: readonly Mount[],
  now: readonly Mount[],
  paths: readonly string[],
  missing: ReadonlySet<string>,
): { readonly path: string; readonly mount: string }[] {
  const known = new Set(before.map(keyOf));
  const added = now.filter((mount) => !known.has(keyOf(mount)));
  return paths.flatMap((path) => {
    const shown = uppermost(before, path);
    if (shown === undefined && !missing.has(path)) return [];
    const late = added.findLast(
      (mount) => (path === mount.path || path.startsWith(`${mount.path}/`)) && !shows(mount, path, shown),
    );
    return late === undefined ? [] : [{ path, mount: late.path }];
  });
}

/** Whether a mount has the same folder at a path as another one that is mounted there. */
function shows({ path: at, root, device }: Mount, path: string, other: Mount | undefined): boolean {
  return other?.device === device && join(root, path.slice(at.length)) === other.root;
}

/** Its number alone may have been another one's before. */
function keyOf({ id, device, root, path }: Mount): string {
  return JSON.stringify([id, device, root, path]);
}

/** The last one at a path lies over the others. */
function uppermost(mounts: readonly Mount[], path: string): Mount | undefined {
  return mounts.findLast((mount) => mount.path === path);
}

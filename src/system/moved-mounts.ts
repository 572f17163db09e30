import { join } from "node:path/posix";
import type { Mount } from "../lib/mount-table.ts";

/**
 * Lists the mount points among `paths` that show a different folder than before, each with its new root. Leaves out a path
 * that is no longer a mount point. Pure.
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
 * Lists the folders at or above which a mount has appeared since `before`, with the path of that mount. A unit does not
 * see such a mount's content, or sees it writable. `missing` names folders that did not exist. Leaves out a mount that
 * shows what the unit shows there anyway (autofs), and a folder that the unit shows without a mount of its own. Pure.
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

/** Whether a mount shows the same folder at a path as another mount does. */
function shows({ path: at, root, device }: Mount, path: string, other: Mount | undefined): boolean {
  return other?.device === device && join(root, path.slice(at.length)) === other.root;
}

/** The kernel reuses mount ids, so the id alone does not identify a mount. */
function keyOf({ id, device, root, path }: Mount): string {
  return JSON.stringify([id, device, root, path]);
}

/** The last mount at a path covers the others. */
function uppermost(mounts: readonly Mount[], path: string): Mount | undefined {
  return mounts.findLast((mount) => mount.path === path);
}

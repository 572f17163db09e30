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

/** The last one at a path lies over the others. */
function uppermost(mounts: readonly Mount[], path: string): Mount | undefined {
  return mounts.findLast((mount) => mount.path === path);
}

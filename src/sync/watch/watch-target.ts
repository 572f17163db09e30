import { readFileSync, realpathSync, statSync } from "node:fs";
import { parseMounts } from "../../lib/mount-table.ts";

/**
 * Identifies what the watches of a folder are attached to: the folder (device and inode), its mount, and the mounts below
 * it. inotify watches belong to inodes: no event reports that a disk is mounted, unmounted or mounted again, and the old
 * watches see nothing of the new contents of the same paths.
 */
export function watchTargetOf(path: string): string {
  try {
    const real = realpathSync(path);
    const { dev, ino } = statSync(real, { bigint: true });
    return `${dev} ${ino} ${mountsAround(real).join(" ")}`;
  } catch {
    return "missing";
  }
}

/** Ids of the folder's own mount and of the mounts below it. Empty if the system does not list its mounts. */
function mountsAround(folder: string): readonly number[] {
  const start = folder === "/" ? "/" : `${folder}/`;
  let under: { readonly path: string; readonly id: number } | undefined;
  const below: number[] = [];
  for (const { path, id } of mountsNow()) {
    const isAbove = path === "/" || path === folder || folder.startsWith(`${path}/`);
    // The last of several mounts at one path covers the others.
    if (isAbove && path.length >= (under?.path.length ?? 0)) under = { path, id };
    else if (path.startsWith(start)) below.push(id);
  }
  return under === undefined ? below : [under.id, ...below];
}

function mountsNow(): ReturnType<typeof parseMounts> {
  try {
    return parseMounts(readFileSync("/proc/self/mountinfo", "utf8"));
  } catch {
    return [];
  }
}

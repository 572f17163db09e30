import { readFileSync, realpathSync, statSync } from "node:fs";
import { parseMounts } from "../../lib/mount-table.ts";

/**
 * Names what the watches of a folder belong to: the folder itself (device and inode), the mount that it is on, and the
 * mounts below it. Watches are inotify's, which belong to inodes: when a disk is mounted, unmounted or mounted anew, no
 * event comes, and the old watches see nothing of what is at the same paths then.
 */
export function groundOf(path: string): string {
  try {
    const real = realpathSync(path);
    const { dev, ino } = statSync(real, { bigint: true });
    return `${dev} ${ino} ${mountsAround(real).join(" ")}`;
  } catch {
    return "missing";
  }
}

/** Numbers of the mount that a folder is on and of those below it. None where the system does not say what is mounted. */
function mountsAround(folder: string): readonly number[] {
  const start = folder === "/" ? "/" : `${folder}/`;
  let under: { readonly path: string; readonly id: number } | undefined;
  const below: number[] = [];
  for (const { path, id } of mountsNow()) {
    const isAbove = path === "/" || path === folder || folder.startsWith(`${path}/`);
    // Of mounts at one path the last lies over the others.
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

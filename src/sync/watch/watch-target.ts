import { readFileSync, realpathSync, statSync } from "node:fs";
import { parseMounts } from "../../lib/mount-table.ts";
import { pathBelow } from "../../lib/path-below.ts";

/**
 * Identifies what the watches of a folder are attached to: the folder (device and inode), and the mounts at, above and below
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

/** Ids of the mounts at, above and below a folder. Empty if the system does not list its mounts. */
function mountsAround(folder: string): readonly number[] {
  try {
    return parseMounts(readFileSync("/proc/self/mountinfo", "utf8"))
      .filter(({ path }) => pathBelow(path, folder) !== undefined || pathBelow(folder, path) !== undefined)
      .map(({ id }) => id);
  } catch {
    return [];
  }
}

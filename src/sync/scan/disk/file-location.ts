import { fstatSync, lstatSync, readlinkSync, realpathSync } from "node:fs";
import type { RelativePath } from "../../plan/model.ts";

/** The expected location of a source's file. */
export interface FileLocation {
  /** The source's folder. */
  readonly root: string;
  readonly path: RelativePath;
}

/** Folder in which Linux lists open descriptors with their paths. */
const DESCRIPTORS = "/proc/self/fd";

/**
 * Real paths of sources' folders, as last resolved. To resolve one costs as much as to read a small file. It is resolved again
 * whenever a file seems to be elsewhere, because a root may be a link that changes.
 */
const realRoots = new Map<string, string>();

/**
 * Whether an open file is at its location, inside the source. O_NOFOLLOW covers only the last part of a path: a folder
 * that was replaced by a link after the scan could lead anywhere. So this asks the kernel which file was opened. A file
 * that was renamed or replaced since it was opened is elsewhere too: check it again.
 */
export function liesInside(
  fd: number,
  { root, path }: FileLocation,
  { descriptors = DESCRIPTORS } = {},
): boolean {
  const opened = openedPath(fd, descriptors);
  const isBelow = (folder: string | undefined): boolean => {
    if (folder === undefined) return false;
    const expected = folder === "/" ? `/${path}` : `${folder}/${path}`;
    return opened === undefined ? isAt(fd, expected) : opened === expected;
  };
  return isBelow(realRoots.get(root)) || isBelow(resolveRoot(root));
}

/** Undefined: there is no such folder, and so no file in it. */
function resolveRoot(root: string): string | undefined {
  try {
    const real = realpathSync(root);
    realRoots.set(root, real);
    return real;
  } catch {
    return undefined;
  }
}

/** Undefined if the system does not provide it, as outside of Linux. */
function openedPath(fd: number, descriptors: string): string | undefined {
  try {
    return readlinkSync(`${descriptors}/${fd}`);
  } catch {
    return undefined;
  }
}

/** Whether the path contains no link and leads to the open file now. */
function isAt(fd: number, path: string): boolean {
  try {
    if (realpathSync(path) !== path) return false;
    const [there, opened] = [lstatSync(path), fstatSync(fd)];
    return there.ino === opened.ino && there.dev === opened.dev;
  } catch {
    return false; // it disappeared, so the open file is another one
  }
}

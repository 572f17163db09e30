import { fstatSync, lstatSync, readlinkSync, realpathSync } from "node:fs";
import type { RelativePath } from "../../plan/model.ts";

/** The expected location of a source's file. */
export interface FileLocation {
  /** The source's folder. */
  readonly root: string;
  readonly path: RelativePath;
  /** Default: resolved now. */
  readonly realRoot?: RealRoot;
}

/**
 * The real path of a source's folder. It is cached, because resolving it costs as much as reading a small file, and resolved
 * again whenever a file seems to be elsewhere, because a root may be a link that changes.
 */
export interface RealRoot {
  /** The path as last resolved; undefined before that. */
  readonly remembered: () => string | undefined;
  /** Resolves it now; undefined if there is no such folder, and so no file in it. */
  readonly lookUp: () => string | undefined;
}

/** Opens the cache of a folder's real path. Resolves nothing yet. */
export function openRealRoot(root: string): RealRoot {
  let known: string | undefined;
  return {
    remembered: () => known,
    lookUp: () => {
      try {
        known = realpathSync(root);
        return known;
      } catch {
        return undefined;
      }
    },
  };
}

/** Folder in which Linux lists open descriptors with their paths. */
const DESCRIPTORS = "/proc/self/fd";

/**
 * Whether an open file is at its location, inside the source. O_NOFOLLOW covers only the last part of a path: a folder
 * that was replaced by a link after the scan could lead anywhere. So this asks the kernel which file was opened. A file
 * that was renamed or replaced since it was opened is elsewhere too: check it again.
 */
export function liesInside(
  fd: number,
  { root, path, realRoot = openRealRoot(root) }: FileLocation,
  { descriptors = DESCRIPTORS } = {},
): boolean {
  const opened = openedPath(fd, descriptors);
  for (const folderOf of [realRoot.remembered, realRoot.lookUp]) {
    const folder = folderOf();
    if (folder === undefined) continue;
    const expected = folder === "/" ? `/${path}` : `${folder}/${path}`;
    if (opened === undefined ? isAt(fd, expected) : opened === expected) return true;
  }
  return false;
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

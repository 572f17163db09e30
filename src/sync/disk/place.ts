import { fstatSync, lstatSync, readlinkSync, realpathSync } from "node:fs";
import type { ScanEntry } from "../plan/model.ts";

/** Where a file of a source should lie: at its own path, or where a followed link led when it was scanned. */
export interface FilePlace extends Pick<ScanEntry, "path" | "link"> {
  /** The source's folder. */
  readonly root: string;
  /** Default: looked up. */
  readonly realRoot?: RealRoot;
}

/**
 * What a source's folder is in truth. It is remembered, for looking it up costs as much as reading a small file, and
 * asked for again whenever a file seems to lie elsewhere, for a root may be a link that moves.
 */
export interface RealRoot {
  /** As it was when it was looked up last; undefined before that. */
  readonly remembered: () => string | undefined;
  /** Undefined: there is no such folder now, so no file lies in it. */
  readonly lookUp: () => string | undefined;
}

/** Opens the memory of a folder's real path. Nothing is looked up yet. */
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

/** The path to open the file by. */
export function absolutePathOf({ root, path, link }: FilePlace): string {
  return link?.real ?? below(root, path);
}

/** Where Linux tells what a descriptor stands for. */
const DESCRIPTORS = "/proc/self/fd";

/**
 * Whether an open file lies where it should, inside the source. O_NOFOLLOW looks at a path's last part alone: a folder
 * that was exchanged for a link after the scan would lead anywhere. So the kernel is asked what was opened in truth.
 * A file that was renamed or replaced since it was opened lies elsewhere too: look at it again.
 */
export function liesInside(
  fd: number,
  { root, path, link, realRoot = openRealRoot(root) }: FilePlace,
  { descriptors = DESCRIPTORS } = {},
): boolean {
  const opened = openedPath(fd, descriptors);
  for (const folderOf of [realRoot.remembered, realRoot.lookUp]) {
    const folder = folderOf();
    if (folder === undefined) continue;
    const expected = link?.real ?? below(folder, path);
    if (!expected.startsWith(below(folder, ""))) continue;
    if (opened === undefined ? isAt(fd, expected) : opened === expected) return true;
  }
  return false;
}

/** Undefined: the system does not tell, as outside of Linux. */
function openedPath(fd: number, descriptors: string): string | undefined {
  try {
    return readlinkSync(`${descriptors}/${fd}`);
  } catch {
    return undefined;
  }
}

/** Whether the path goes through no link and leads to the open file, as of now. */
function isAt(fd: number, path: string): boolean {
  try {
    if (realpathSync(path) !== path) return false;
    const [there, opened] = [lstatSync(path), fstatSync(fd)];
    return there.ino === opened.ino && there.dev === opened.dev;
  } catch {
    return false; // gone meanwhile, so the file we hold is not it
  }
}

function below(folder: string, path: string): string {
  return folder === "/" ? `/${path}` : `${folder}/${path}`;
}

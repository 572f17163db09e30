import { fstatSync, lstatSync, readlinkSync, realpathSync } from "node:fs";
import type { ScanEntry } from "../plan/model.ts";

/** Where a file of a source should lie: at its own path, or where a followed link led when it was scanned. */
export interface FilePlace extends Pick<ScanEntry, "path" | "link"> {
  /** The source's folder. */
  readonly root: string;
}

/** The path to open the file by. */
export function absolutePathOf({ root, path, link }: FilePlace): string {
  return link?.real ?? below(root, path);
}

/** Where Linux tells what a descriptor stands for. */
const DESCRIPTORS = "/proc/self/fd";

/** Real paths of roots: asked for again whenever a file seems to lie elsewhere, for a root may be a link that moves. */
const realRoots = new Map<string, string>();

/** More roots than a configuration can have sources need not be remembered. */
const REAL_ROOTS_MAX = 1000;

/**
 * Whether an open file lies where it should, inside the source. O_NOFOLLOW looks at a path's last part alone: a folder
 * that was exchanged for a link after the scan would lead anywhere. So the kernel is asked what was opened in truth.
 * A file that was renamed or replaced since it was opened lies elsewhere too: look at it again.
 */
export function liesInside(
  fd: number,
  { root, path, link }: FilePlace,
  { descriptors = DESCRIPTORS } = {},
): boolean {
  const opened = openedPath(fd, descriptors);
  // Asked for one after the other: looking a root up again costs as much as reading a small file.
  for (const realRootOf of [(): string | undefined => realRoots.get(root), () => freshRealRoot(root)]) {
    const realRoot = realRootOf();
    if (realRoot === undefined) continue;
    const expected = link?.real ?? below(realRoot, path);
    if (!expected.startsWith(below(realRoot, ""))) continue;
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

function freshRealRoot(root: string): string | undefined {
  try {
    const real = realpathSync(root);
    if (realRoots.size >= REAL_ROOTS_MAX) realRoots.clear();
    realRoots.set(root, real);
    return real;
  } catch {
    return undefined; // a root that is gone holds no file
  }
}

function below(folder: string, path: string): string {
  return folder === "/" ? `/${path}` : `${folder}/${path}`;
}

import { lstatSync, realpathSync, statSync } from "node:fs";
import { dirname, join, relative } from "node:path";

/** Name of Git's ignore files. */
export const GIT_IGNORE = ".gitignore";

/** The Git work tree that contains a source. */
export interface WorkTree {
  /** Its top folder, without links. */
  readonly top: string;
  /** The source's folder below the top; "" for the top itself. */
  readonly prefix: string;
}

/** Returns the Git work tree around a folder; undefined if there is none, or no folder. */
export function workTreeAround(folder: string): WorkTree | undefined {
  const real = realPathOf(folder);
  for (let at = real; at !== undefined; at = dirname(at) === at ? undefined : dirname(at))
    if (real !== undefined && isWorkTree(at)) return { top: at, prefix: relative(at, real) };
  return undefined;
}

/** Whether a folder is the top of a work tree: it has a repository, or a file that names one, as in submodules. */
function isWorkTree(folder: string): boolean {
  try {
    const git = join(folder, ".git");
    const stats = lstatSync(git, { throwIfNoEntry: false });
    return stats?.isFile() === true || statSync(join(git, "HEAD"), { throwIfNoEntry: false }) !== undefined;
  } catch {
    return false;
  }
}

function realPathOf(folder: string): string | undefined {
  try {
    return realpathSync(folder);
  } catch {
    return undefined; // missing: the scan reports it
  }
}

import { lstatSync } from "node:fs";
import { resolve } from "node:path";
import { KbsyncError } from "../../lib/failure.ts";
import { pathBelow } from "../../lib/path-below.ts";
import { shellWord } from "../../lib/shell-word.ts";

/** The known paths that a typed path may refer to. */
export interface KnownPaths {
  readonly cwd: string;
  /** The folders of the sources. */
  readonly folders: readonly string[];
  /** Whether an absolute path exists on disk or in the ledger. */
  readonly isKnown: (path: string) => boolean;
}

/**
 * Returns the absolute path that a person means. The path may be typed or copied from an answer: absolute, or relative to the
 * working folder or a source, with or without a location such as `:12` or ` (page 3)`. Existing paths come first. Throws
 * `usage` if several sources have it.
 */
export function locatePath(typed: string, known: KnownPaths): string {
  const { cwd, folders } = known;
  for (const name of [typed, withoutLocation(typed)]) {
    const here = resolve(cwd, name);
    if (known.isKnown(here)) return here;
    const found = [...new Set(folders.map((folder) => resolve(folder, name)))].filter(known.isKnown);
    const [first, ...others] = found;
    if (first !== undefined && others.length === 0) return first;
    if (first !== undefined) throw ambiguous(name, found);
  }
  // Nothing exists there. A path outside all sources can only be relative to the only source.
  const here = resolve(cwd, typed);
  const [folder, ...others] = folders;
  const isInSource = folders.some((each) => pathBelow(each, here) !== undefined);
  return isInSource || folder === undefined || others.length > 0 ? here : resolve(folder, typed);
}

/** Whether a path exists, as far as this process can see. Does not follow a link. */
export function isOnDisk(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch {
    return false; // in a folder that this process may not read
  }
}

/** `notes.md` of `notes.md:12`, `notes.md:12-14` and `notes.md (page 3)`. */
function withoutLocation(typed: string): string {
  return typed.replace(/(?::\d+(?:[-–:]\d+)?| \([^()]*(?:\([^()]*\))?[^()]*\))$/, "");
}

function ambiguous(typed: string, paths: readonly string[]): KbsyncError {
  return new KbsyncError(`${paths.length} sources have ${typed}`, {
    code: "usage",
    subject: typed,
    hint: `Name one of them: ${paths.map(shellWord).join(", ")}.`,
  });
}

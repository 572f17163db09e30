import { lstatSync } from "node:fs";
import { resolve } from "node:path";
import { KbsyncError } from "../../lib/failure.ts";
import { pathBelow } from "../../lib/path-below.ts";
import { shellWord } from "../../lib/shell-word.ts";

/** The paths that a typed path may refer to. */
export interface KnownPaths {
  readonly cwd: string;
  /** The folders of the sources. */
  readonly folders: readonly string[];
  /** Whether there is something at an absolute path, on disk or in the ledger. */
  readonly isKnown: (path: string) => boolean;
}

/**
 * Returns the absolute path that a person means, who may have typed it or copied it from an answer: absolute, relative to the
 * working folder or to a source, with or without a location such as `:12` or ` (page 3)` after it. What exists comes first. Throws
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
  // Nothing is there. A path in no source can only be meant below the only one.
  const here = resolve(cwd, typed);
  const [folder, ...others] = folders;
  const isInSource = folders.some((each) => pathBelow(each, here) !== undefined);
  return isInSource || folder === undefined || others.length > 0 ? here : resolve(folder, typed);
}

/** Whether something is at a path, as far as this process can see. A link is not followed. */
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

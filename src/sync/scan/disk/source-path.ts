import { KbsyncError } from "../../../lib/failure.ts";
import { innermost } from "../../../lib/path-below.ts";
import type { RelativePath } from "../../plan/model.ts";

/** `source_unknown`: the given folder is not a source. */
export function unknownSource(folder: string, known: readonly string[]): KbsyncError {
  return new KbsyncError(`${folder} is not a source`, {
    code: "source_unknown",
    subject: folder,
    hint: knownWords(known),
  });
}

/** `outside_sources`: the given path is in no source. */
export function outsideSources(path: string, known: readonly string[]): KbsyncError {
  return new KbsyncError(`${path} is outside all sources`, {
    code: "outside_sources",
    subject: path,
    hint: knownWords(known),
  });
}

/**
 * Finds the innermost source that contains an absolute path. `below` is undefined for the source as a whole. Throws
 * `outside_sources`.
 */
export function targetIn<S>(
  sources: readonly S[],
  folderOf: (source: S) => string,
  path: string,
): { readonly source: S; readonly below: RelativePath | undefined } {
  const found = innermost(sources, folderOf, path);
  if (found === undefined) throw outsideSources(path, [...new Set(sources.map(folderOf))]);
  return { source: found.item, below: found.below === "" ? undefined : found.below };
}

function knownWords(known: readonly string[]): string {
  return known.length === 0
    ? "No folder is synced yet: `kbsync up FOLDER` syncs one."
    : `The sources are: ${known.join(", ")}.`;
}

/** Whether a path is at or below another; undefined stands for the source itself. */
export function isBelow(path: RelativePath, below: RelativePath | undefined): boolean {
  return below === undefined || path === below || path.startsWith(`${below}/`);
}

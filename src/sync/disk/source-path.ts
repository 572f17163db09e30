import { KbsyncError } from "../../lib/failure.ts";
import type { RelativePath } from "../plan/model.ts";

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

function knownWords(known: readonly string[]): string {
  return known.length === 0
    ? "No folder is synced yet: `kbsync up FOLDER` syncs one."
    : `The sources are: ${known.join(", ")}.`;
}

/** Whether a path is at or below another; undefined stands for the source itself. */
export function isBelow(path: RelativePath, below: RelativePath | undefined): boolean {
  return below === undefined || path === below || path.startsWith(`${below}/`);
}

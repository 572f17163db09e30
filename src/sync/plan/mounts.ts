import type { KnownFile, RelativePath, ScanEntry } from "./model.ts";

/**
 * Reports whether the files below a mount are those that the ledger knows there, and not others that hide them: each
 * has a file at its path, or most are the very same. Pure. `rows` are all rows below the mount's path.
 */
export function holdsKnownFiles(
  rows: Iterable<KnownFile>,
  entryAt: (path: RelativePath) => Pick<ScanEntry, "ino"> | undefined,
): boolean {
  let known = 0;
  let there = 0;
  let same = 0;
  for (const { path, ino, state, docId } of rows) {
    if (docId === null || state === "held" || state === "doomed") continue;
    const entry = entryAt(path);
    known += 1;
    there += Number(entry !== undefined);
    same += Number(entry?.ino === ino);
  }
  return there === known || 2 * same >= known;
}

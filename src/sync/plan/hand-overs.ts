import { innermost, pathBelow } from "../../lib/path-below.ts";
import type { FolderPath } from "./model.ts";
import { scopeTest } from "./scope.ts";

/** A source as far as its folder decides which files are its own. */
export interface SourceFolder {
  readonly id: number;
  /** Absolute, without symbolic links. */
  readonly path: string;
  /** Folders below it that are not its own, relative to it. */
  readonly innerFolders?: readonly FolderPath[] | undefined;
}

/** Rows that another source owns now: those at or below `below`, whose paths change from there to `to`. */
export interface HandOver {
  readonly from: number;
  readonly below: FolderPath;
  readonly source: number;
  readonly to: FolderPath;
}

/**
 * Finds rows whose files belong to another source since sources were nested otherwise: an inner source takes over its files
 * from those around it, and the files of a source that left the configuration go to the one around it. Their resources are
 * then replaced or retitled one by one, so that nothing is doubled or lost. `known` are sources with rows. Pure; the result
 * is in the order in which to apply it.
 */
export function findHandOvers(
  known: readonly SourceFolder[],
  configured: readonly SourceFolder[],
): readonly HandOver[] {
  // The innermost first: what it takes is no longer there for those around it.
  const inwards = configured.toSorted((a, b) => b.path.length - a.path.length);
  return known.flatMap(({ id: from, path }) => {
    const inner = inwards.flatMap(({ id: source, path: folder }) => {
      const below = pathBelow(path, folder);
      return source === from || below === undefined || below === "" ? [] : [{ from, below, source, to: "" }];
    });
    if (configured.some(({ id }) => id === from)) return inner;
    const around = innermost(configured, (each) => each.path, path);
    // A configured source that does not run keeps its rows.
    if (around === undefined || scopeTest(around.item.innerFolders ?? [])(around.below)) return inner;
    return [...inner, { from, below: "", source: around.item.id, to: around.below }];
  });
}

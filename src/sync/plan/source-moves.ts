import { isSameRoot } from "./brakes.ts";
import type { RootIdentity } from "./model.ts";

/** A configured source whose folder the ledger does not know. */
export interface NewSource {
  readonly path: string;
  readonly ownerId: string;
  readonly tier: string;
  /** Undefined: the folder does not exist. */
  readonly root: RootIdentity | undefined;
}

/** A source that left the configuration and still has resources. */
export interface LostSource {
  readonly id: number;
  readonly ownerId: string;
  readonly tier: string;
  /** Its folder at the last agreement. */
  readonly root: RootIdentity | undefined;
  /** Whether a folder exists at its path. */
  readonly isThere: boolean;
}

/** A source whose folder has another path now. */
export interface SourceMove {
  readonly id: number;
  readonly path: string;
}

/**
 * Finds sources that were renamed in the configuration together with their folder. The ledger's row then moves along,
 * and nothing is created twice. The folder is the very same one (device and inode), or it is gone from its old path and
 * the new one holds its files, as `holdsFiles` reports. Only sources of the same owner and tier match. Where one of
 * either side fits several of the other, none of them moves. Pure apart from its callback.
 */
export function findSourceMoves(
  fresh: readonly NewSource[],
  lost: readonly LostSource[],
  holdsFiles: (path: string, id: number) => boolean,
): readonly SourceMove[] {
  const bySameRoot = unambiguous(fresh, lost, isSameFolder);
  const moved = new Set(bySameRoot.map(({ id }) => id));
  const taken = new Set(bySameRoot.map(({ path }) => path));
  const byFiles = unambiguous(
    fresh.filter(({ path }) => !taken.has(path)),
    lost.filter(({ id, isThere }) => !moved.has(id) && !isThere),
    (source, { id }) => source.root !== undefined && holdsFiles(source.path, id),
  );
  return [...bySameRoot, ...byFiles];
}

function isSameFolder({ root }: NewSource, other: LostSource): boolean {
  return root !== undefined && isSameRoot(root, other.root);
}

/** Returns the pairs in which each side fits no other one. */
function unambiguous(
  fresh: readonly NewSource[],
  lost: readonly LostSource[],
  fits: (source: NewSource, other: LostSource) => boolean,
): readonly SourceMove[] {
  const pairs = fresh.flatMap((source) =>
    lost
      .filter((other) => source.ownerId === other.ownerId && source.tier === other.tier)
      .filter((other) => fits(source, other))
      .map((other) => ({ id: other.id, path: source.path })),
  );
  return pairs.filter(
    ({ id, path }) => pairs.filter((pair) => pair.id === id || pair.path === path).length === 1,
  );
}

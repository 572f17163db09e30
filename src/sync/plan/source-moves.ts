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
export interface LostSource extends Omit<NewSource, "path"> {
  readonly id: number;
}

/** A source whose folder has another path now. */
export interface SourceMove {
  readonly id: number;
  readonly path: string;
}

/**
 * Finds sources that were renamed in the configuration together with their folder, which is the very same one. The ledger's
 * row then moves along, and nothing is created twice. Only sources of the same owner and tier match. Where one of either side
 * fits several of the other, none of them moves. Pure.
 */
export function findSourceMoves(
  fresh: readonly NewSource[],
  lost: readonly LostSource[],
): readonly SourceMove[] {
  const pairs = fresh.flatMap((source) =>
    lost
      .filter(
        ({ ownerId, tier, root }) => source.ownerId === ownerId && source.tier === tier && root !== undefined,
      )
      .filter(({ root }) => isSameRoot(source.root, root))
      .map(({ id }) => ({ id, path: source.path })),
  );
  return pairs.filter(
    ({ id, path }) => pairs.filter((pair) => pair.id === id || pair.path === path).length === 1,
  );
}

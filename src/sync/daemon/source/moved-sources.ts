import { rootIdentityAt } from "../../scan/disk/root-identity.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import { findSourceMoves, type SourceMove } from "../../plan/source-moves.ts";
import type { WatchedSource } from "../../scan/rules/rules.ts";

/**
 * Finds configured sources whose folder was renamed together with its entry, and the ledger's rows that are theirs.
 * Writes nothing.
 */
export function movedSources(ledger: Ledger, configured: readonly WatchedSource[]): readonly SourceMove[] {
  const paths = new Set(configured.map(({ absolutePath }) => absolutePath));
  const lost = ledger.sources.withFiles().filter(({ path }) => !paths.has(path));
  if (lost.length === 0) return [];
  const fresh = configured.filter(({ absolutePath, ownerId, collection }) => {
    const row = ledger.sources.peek(absolutePath, ownerId, collection);
    return row === undefined || ledger.sources.isEmpty(row.id);
  });
  return findSourceMoves(
    fresh.map(({ absolutePath, ownerId, collection }) => ({
      path: absolutePath,
      ownerId,
      tier: collection,
      // Without an identity the sources stay two, and nothing is lost.
      root: rootIdentityAt(absolutePath),
    })),
    lost,
  );
}

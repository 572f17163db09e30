import { lstatSync, statSync } from "node:fs";
import { join } from "node:path";
import { integerColumn } from "../../lib/integer-column.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { RootIdentity } from "../plan/model.ts";
import { rootIdentityOf } from "../disk/root-identity.ts";
import { sameIdentity } from "../plan/moves.ts";
import { findSourceMoves, type SourceMove } from "../plan/source-moves.ts";
import type { WatchedSource } from "../rules/rules.ts";

/** Rows that are checked to decide whether a folder holds a source's files. */
const SAMPLE_ROWS = 200;
/** Part of them that must be unchanged: some may have been edited or deleted meanwhile. */
const SAMPLE_PART = 0.5;

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
      root: identify(absolutePath),
    })),
    lost.map(({ id, path, ownerId, tier, root }) => ({
      id,
      ownerId,
      tier,
      root,
      isThere: identify(path) !== undefined,
    })),
    (path, id) => holdsFiles(ledger, path, id),
  );
}

/** Reports whether a folder holds most of a source's files under their own names, by inode, size and time. */
function holdsFiles(ledger: Ledger, folder: string, source: number): boolean {
  const rows = ledger.files.some(source, SAMPLE_ROWS).filter(({ docId }) => docId !== null);
  const found = rows.filter(({ path, ...known }) => {
    const stats = statOf(() => lstatSync(join(folder, path), { throwIfNoEntry: false }));
    return (
      stats !== undefined &&
      sameIdentity(known, { ino: integerColumn(stats.ino), sizeBytes: stats.size, mtimeMs: stats.mtimeMs })
    );
  });
  return rows.length > 0 && found.length >= rows.length * SAMPLE_PART;
}

function identify(path: string): RootIdentity | undefined {
  const stats = statOf(() => statSync(path, { throwIfNoEntry: false }));
  return stats?.isDirectory() === true ? rootIdentityOf(stats) : undefined;
}

/** An error proves nothing here: the sources stay two, and nothing is lost. */
function statOf<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

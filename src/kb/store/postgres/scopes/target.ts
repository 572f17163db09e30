import { rowsOfScope } from "../../../index/rows.ts";
import type { SearchTarget } from "../../search/search-target.ts";
import type { Scope } from "../../search-index.ts";
import type { Transaction } from "../database/connections.ts";
import { filterRows, type FilterCache } from "./filters.ts";

/** The range of a search, in one snapshot. */
export interface Target extends SearchTarget {
  readonly accountId: string;
  /** Number of the newest change of the scope's vectors. */
  readonly vectorChanges: number;
}

interface TargetRow {
  readonly number: number;
  readonly chunks: number;
  readonly words: number;
  readonly nextSequence: number;
  readonly merged: number;
  readonly refiltered: number;
  readonly vectorChanges: number;
  readonly firstRow: number | null;
  readonly resourceChunks: number;
}

const COLUMNS = `scope.number, scope.chunks, scope.words, next_sequence AS "nextSequence", merged, refiltered,
  vector_changes AS "vectorChanges"`;

/** Resolves a scope. Returns undefined if the account has no such resource, collection or owner. */
export async function findTarget(
  tx: Transaction,
  cache: FilterCache,
  scope: Scope,
): Promise<Target | undefined> {
  const { accountId, filter } = scope;
  const row =
    "resourceId" in scope
      ? await tx.get<TargetRow>(
          `SELECT ${COLUMNS}, first_row AS "firstRow", resource.chunks AS "resourceChunks"
          FROM resource JOIN scope ON scope.number = resource.scope
          WHERE resource.account_id = @accountId AND resource.id = @id AND NOT is_deleted`,
          { accountId, id: scope.resourceId },
        )
      : await tx.get<TargetRow>(
          `SELECT ${COLUMNS}, NULL AS "firstRow", 0 AS "resourceChunks" FROM scope
          WHERE collection_id = @collectionId AND owner_id = @ownerId
            AND (SELECT account_id FROM collection WHERE collection.id = collection_id) = @accountId`,
          { accountId, collectionId: scope.collectionId, ownerId: scope.ownerId },
        );
  if (row === undefined) return undefined;
  const { number, chunks, words, nextSequence, merged, refiltered, vectorChanges, firstRow } = row;
  const filtered = { accountId, scope: number, nextSequence, refiltered };
  const allowed = filter && (await filterRows(tx, cache, filtered, filter));
  const part = { accountId, scope: number, chunks, words, nextSequence, merged, vectorChanges, allowed };
  const rangeChunks = row.resourceChunks;
  return firstRow === null
    ? { ...part, range: rowsOfScope(number), rangeChunks: chunks }
    : { ...part, range: { first: firstRow, last: firstRow + rangeChunks - 1 }, rangeChunks };
}

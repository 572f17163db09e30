import type { Scope } from "../../search-index.ts";
import type { Connection } from "../database/connection.ts";
import { prepareFilters } from "./filters.ts";
import { rowsOfScope } from "../../../index/rows.ts";
import type { SearchTarget } from "../../search/search-target.ts";

interface TargetRow {
  readonly number: number;
  readonly chunks: number;
  readonly words: number;
  readonly next_sequence: number;
  readonly merged: number;
  readonly refiltered: number;
  readonly first_row: number | null;
  readonly resource_chunks: number;
}

/** Prepares `find`, which resolves a scope. It returns undefined if the account has no such resource, collection or owner. */
export function prepareScopes(db: Connection): { find(scope: Scope): SearchTarget | undefined } {
  // A join would cost several times as much, and every search runs this two or three times.
  const selectOwner = db.prepare<[string, string, string], TargetRow>(`
    SELECT number, chunks, words, next_sequence, merged, refiltered, NULL AS first_row, 0 AS resource_chunks
    FROM scope
    WHERE collection_id = ? AND owner_id = ? AND (SELECT account_id FROM collection WHERE id = collection_id) = ?`);
  const selectResource = db.prepare<[string, string], TargetRow>(`
    SELECT scope.number, scope.chunks, scope.words, next_sequence, merged, refiltered, first_row, resource.chunks AS resource_chunks
    FROM resource JOIN scope ON scope.number = resource.scope
    WHERE resource.id = ? AND resource.account_id = ? AND is_deleted = 0`);

  const filterRows = prepareFilters(db);

  return {
    find(scope) {
      const row =
        "resourceId" in scope
          ? selectResource.get(scope.resourceId, scope.accountId)
          : selectOwner.get(scope.collectionId, scope.ownerId, scope.accountId);
      if (row === undefined) return undefined;
      const { number, chunks, words, next_sequence: nextSequence, merged } = row;
      const { filter } = scope;
      const allowed =
        filter && filterRows({ scope: number, nextSequence, refiltered: row.refiltered }, filter);
      const part = { scope: number, chunks, words, nextSequence, merged, allowed };
      const { first_row: first, resource_chunks: rangeChunks } = row;
      return first === null
        ? { ...part, range: rowsOfScope(number), rangeChunks: chunks }
        : { ...part, range: { first, last: first + rangeChunks - 1 }, rangeChunks };
    },
  };
}

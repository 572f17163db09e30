import type { Scope } from "../../records.ts";
import type { Connection } from "../database/connection.ts";
import { prepareFilters } from "./filters.ts";
import type { RowSet } from "../../../index/row-set.ts";
import { rowsOfScope, type RowRange } from "../../../index/rows.ts";

/** Where a search looks, as the tables know it. */
export interface Place {
  /** The owner's part of the collection: its statistics weigh the words, also in the search of one resource. */
  readonly scope: number;
  /** Live chunks of that part, and their words. */
  readonly chunks: number;
  readonly words: number;
  /** Sequence the next chunk of that part will get: all before it exist or are gone for good. */
  readonly nextSequence: number;
  /** Differs when chunks that stay got other terms. */
  readonly retitled: number;
  /** Rows to search: those of the scope, or of the one resource. */
  readonly range: RowRange;
  /** Live chunks in that range. */
  readonly rangeChunks: number;
  /** Sequences that a filter lets through; undefined: all. */
  readonly allowed: RowSet | undefined;
}

interface PlaceRow {
  readonly number: number;
  readonly chunks: number;
  readonly words: number;
  readonly next_sequence: number;
  readonly retitled: number;
  readonly refiltered: number;
  readonly first_row: number | null;
  readonly resource_chunks: number;
}

/** Prepares finding the place of a search; undefined when the account has no such resource, collection or owner. */
export function prepareScopes(db: Connection): { find(scope: Scope): Place | undefined } {
  // Without a join, which costs several times as much; every search asks this two or three times.
  const selectOwner = db.prepare<[string, string, string], PlaceRow>(`
    SELECT number, chunks, words, next_sequence, retitled, refiltered, NULL AS first_row, 0 AS resource_chunks
    FROM scope
    WHERE collection_id = ? AND owner_id = ? AND (SELECT account_id FROM collection WHERE id = collection_id) = ?`);
  const selectResource = db.prepare<[string, string], PlaceRow>(`
    SELECT scope.number, scope.chunks, scope.words, next_sequence, retitled, refiltered, first_row, resource.chunks AS resource_chunks
    FROM resource JOIN scope ON scope.number = resource.scope
    WHERE resource.id = ? AND resource.account_id = ? AND is_deleted = 0`);

  const filtered = prepareFilters(db);

  return {
    find(scope) {
      const row =
        "resourceId" in scope
          ? selectResource.get(scope.resourceId, scope.accountId)
          : selectOwner.get(scope.collectionId, scope.ownerId, scope.accountId);
      if (row === undefined) return undefined;
      const { number, chunks, words, next_sequence: nextSequence, retitled } = row;
      const { filter } = scope;
      const allowed = filter && filtered({ scope: number, nextSequence, refiltered: row.refiltered }, filter);
      const part = { scope: number, chunks, words, nextSequence, retitled, allowed };
      const { first_row: first, resource_chunks: rangeChunks } = row;
      return first === null
        ? { ...part, range: rowsOfScope(number), rangeChunks: chunks }
        : { ...part, range: { first, last: first + rangeChunks - 1 }, rangeChunks };
    },
  };
}

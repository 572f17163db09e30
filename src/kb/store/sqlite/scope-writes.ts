import { KbsyncError } from "../../../lib/failure.ts";
import type { NewResource } from "../store.ts";
import type { Connection } from "./connection.ts";
import { rowOf, SCOPE_NUMBER_MAX, SEQUENCE_MAX } from "./rows.ts";

/** Writes of scopes (an owner's part of a collection); each runs inside a transaction of the caller. */
export interface ScopeWrites {
  /** Number of the scope of the resource's collection and owner, made when new. */
  open(of: Pick<NewResource, "accountId" | "tier" | "ownerId">): { scope: number; collectionId: string };
  /** Reserves consecutive row numbers and returns the first. */
  takeRows(scope: number, rows: number): number;
  count(scope: number, resources: number, chunks: number, words: number): void;
  /** Notes that chunks that stay have other terms than before. */
  noteRetitled(scope: number): void;
}

/** Prepares the statements on the writing connection. */
export function prepareScopeWrites(db: Connection): ScopeWrites {
  const selectCollection = db
    .prepare<[string, string], string>("SELECT id FROM collection WHERE account_id = ? AND tier = ?")
    .pluck();
  const selectScope = db
    .prepare<[string, string], number>("SELECT number FROM scope WHERE collection_id = ? AND owner_id = ?")
    .pluck();
  const insertScope = db.prepare("INSERT INTO scope (collection_id, owner_id) VALUES (?, ?)");
  const takeSequence = db
    .prepare<[number, number], number>(
      "UPDATE scope SET next_sequence = next_sequence + ? WHERE number = ? RETURNING next_sequence",
    )
    .pluck();
  const addCounts = db.prepare(
    "UPDATE scope SET resources = resources + ?, chunks = chunks + ?, words = words + ? WHERE number = ?",
  );
  const addRetitled = db.prepare("UPDATE scope SET retitled = retitled + 1 WHERE number = ?");

  return {
    open({ accountId, tier, ownerId }) {
      const collectionId = selectCollection.get(accountId, tier);
      if (collectionId === undefined) {
        throw new KbsyncError(`no account ${accountId} in the store`, {
          code: "no_account",
          subject: accountId,
        });
      }
      const found = selectScope.get(collectionId, ownerId);
      if (found !== undefined) return { scope: found, collectionId };
      const scope = Number(insertScope.run(collectionId, ownerId).lastInsertRowid);
      if (scope > SCOPE_NUMBER_MAX) throw full(`more than ${SCOPE_NUMBER_MAX} owners`);
      return { scope, collectionId };
    },
    takeRows(scope, rows) {
      const next = takeSequence.get(rows, scope) ?? 0;
      if (next > SEQUENCE_MAX) throw full(`more than ${SEQUENCE_MAX} chunks written for one owner`);
      return rowOf(scope, next - rows);
    },
    count: (scope, resources, chunks, words) => {
      addCounts.run(resources, chunks, words, scope);
    },
    noteRetitled: (scope) => {
      addRetitled.run(scope);
    },
  };
}

function full(what: string): KbsyncError {
  return new KbsyncError(`the store is full: ${what}`, { code: "store_full" });
}

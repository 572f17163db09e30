import { KbsyncError } from "../../../../lib/failure.ts";
import type { NewResource } from "../../records.ts";
import type { Connection } from "../database/connection.ts";
import { rowOf, SCOPE_NUMBER_MAX, SEQUENCE_MAX } from "../../../index/rows.ts";

/** Numbers that one account may use up: the others need some too. */
const SCOPES_PER_ACCOUNT_MAX = Math.ceil(SCOPE_NUMBER_MAX / 2);
/** Empty scopes looked at for one that can be used again, by one write: a millisecond or two. */
const EMPTY_LOOKED_AT = 1000;

/** Writes of scopes (an owner's part of a collection); each runs inside a transaction of the caller. */
export interface ScopeWrites {
  /** Number of the scope of the resource's collection and owner, made when new. Throws `store_full`. */
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
  const selectLast = db.prepare<[], number | null>("SELECT max(number) FROM scope").pluck();
  const countOfAccount = db
    .prepare<[string], number>(
      "SELECT count(*) FROM scope WHERE collection_id IN (SELECT id FROM collection WHERE account_id = ?)",
    )
    .pluck();
  const selectEmpty = db
    .prepare<[number], number>(
      `SELECT number FROM scope WHERE resources = 0 AND number > ? ORDER BY number LIMIT ${EMPTY_LOOKED_AT}`,
    )
    .pluck();
  const selectRecord = db.prepare<[number]>(
    "SELECT 1 FROM resource WHERE scope = ? AND is_deleted = 1 LIMIT 1",
  );
  // The sequence goes on, so that no row number comes again: searchers have in memory what the earlier ones were.
  const takeOver = db.prepare(`
    UPDATE scope SET collection_id = ?, owner_id = ?, serving_model = NULL, retitled = retitled + 1,
      refiltered = refiltered + 1 WHERE number = ?`);
  const takeSequence = db
    .prepare<[number, number], number>(
      "UPDATE scope SET next_sequence = next_sequence + ? WHERE number = ? RETURNING next_sequence",
    )
    .pluck();
  const addCounts = db.prepare(
    "UPDATE scope SET resources = resources + ?, chunks = chunks + ?, words = words + ? WHERE number = ?",
  );
  const addRetitled = db.prepare("UPDATE scope SET retitled = retitled + 1 WHERE number = ?");

  /** Where the search for an empty scope goes on. */
  let lookedTo = 0;
  /** A scope of which nothing is left, not even the record of a deleted resource. */
  const findEmpty = (): number | undefined => {
    let numbers = selectEmpty.all(lookedTo);
    // From the beginning again: what lies there may have become empty since.
    if (numbers.length === 0) numbers = selectEmpty.all(0);
    const found = numbers.find((number) => selectRecord.get(number) === undefined);
    lookedTo = found ?? numbers.at(-1) ?? 0;
    return found;
  };
  /** The number of a new scope. */
  const make = (accountId: string, collectionId: string, ownerId: string): number => {
    const last = selectLast.get() ?? 0;
    if (last >= SCOPES_PER_ACCOUNT_MAX) {
      const empty = findEmpty();
      if (empty !== undefined) {
        takeOver.run(collectionId, ownerId, empty);
        return empty;
      }
      if (last >= SCOPE_NUMBER_MAX) throw full(`${SCOPE_NUMBER_MAX} owners of all accounts`);
      if ((countOfAccount.get(accountId) ?? 0) >= SCOPES_PER_ACCOUNT_MAX)
        throw full(`${SCOPES_PER_ACCOUNT_MAX} owners of this account`);
    }
    return Number(insertScope.run(collectionId, ownerId).lastInsertRowid);
  };

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
      return { scope: found ?? make(accountId, collectionId, ownerId), collectionId };
    },
    takeRows(scope, rows) {
      const next = takeSequence.get(rows, scope) ?? 0;
      if (next > SEQUENCE_MAX) throw full(`${SEQUENCE_MAX} chunks written for one owner`);
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
  return new KbsyncError(`the knowledge base has room for no more than ${what}`, {
    code: "store_full",
    hint: "An owner's room is free again when all its documents are deleted and their records purged.",
  });
}

import { KbsyncError } from "../../../../lib/failure.ts";
import type { NewResource } from "../../resources.ts";
import type { Connection } from "../database/connection.ts";
import { rowOf, SCOPE_NUMBER_MAX, SEQUENCE_MAX } from "../../../index/rows.ts";

/** Maximum scopes of one account, so that some remain for other accounts. */
const SCOPES_PER_ACCOUNT_MAX = Math.ceil(SCOPE_NUMBER_MAX / 2);
/** Maximum empty scopes that one write checks for reuse: takes a millisecond or two. */
const EMPTY_CHECKED_MAX = 1000;

/** Writes of scopes (an owner's part of a collection). Each runs inside a transaction of the caller. */
export interface ScopeWrites {
  /** Returns the scope of the resource's collection and owner; creates it if it does not exist. Throws `store_full`. */
  open(of: Pick<NewResource, "accountId" | "tier" | "ownerId">): { scope: number; collectionId: string };
  /** Reserves consecutive row numbers and returns the first. */
  reserveRows(scope: number, rows: number): number;
  count(scope: number, resources: number, chunks: number, words: number): void;
}

/** Prepares the statements on the writing connection. */
export function prepareScopeWrites(db: Connection): ScopeWrites {
  const selectCollection = db
    .prepare<[string, string], string>("SELECT id FROM collection WHERE account_id = ? AND tier = ?")
    .pluck();
  const selectScope = db
    .prepare<[string, string], number>("SELECT number FROM scope WHERE collection_id = ? AND owner_id = ?")
    .pluck();
  const make = prepareNewScopes(db);
  const reserveSequence = db
    .prepare<[number, number], number>(
      "UPDATE scope SET next_sequence = next_sequence + ? WHERE number = ? RETURNING next_sequence",
    )
    .pluck();
  const addCounts = db.prepare(
    "UPDATE scope SET resources = resources + ?, chunks = chunks + ?, words = words + ? WHERE number = ?",
  );

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
    reserveRows(scope, rows) {
      const next = reserveSequence.get(rows, scope) ?? 0;
      if (next > SEQUENCE_MAX) throw full(`${SEQUENCE_MAX} chunks written for one owner`);
      return rowOf(scope, next - rows);
    },
    count: (scope, resources, chunks, words) => {
      addCounts.run(resources, chunks, words, scope);
    },
  };
}

/** Prepares the creation of a scope, which reuses an empty one once half of all numbers are used. Returns its number. */
function prepareNewScopes(db: Connection) {
  const insertScope = db.prepare("INSERT INTO scope (collection_id, owner_id) VALUES (?, ?)");
  const selectLast = db.prepare<[], number | null>("SELECT max(number) FROM scope").pluck();
  const countOfAccount = db
    .prepare<[string], number>(
      "SELECT count(*) FROM scope WHERE collection_id IN (SELECT id FROM collection WHERE account_id = ?)",
    )
    .pluck();
  const selectEmpty = db
    .prepare<[number], number>(
      `SELECT number FROM scope WHERE resources = 0 AND number > ? ORDER BY number LIMIT ${EMPTY_CHECKED_MAX}`,
    )
    .pluck();
  const selectRecord = db.prepare<[number]>(
    "SELECT 1 FROM resource WHERE scope = ? AND is_deleted = 1 LIMIT 1",
  );
  // The sequence continues, so that no row number is reused: searchers have caches by row number.
  const reassign = db.prepare(`
    UPDATE scope SET collection_id = ?, owner_id = ?, serving_model = NULL, merged = merged + 1,
      refiltered = refiltered + 1 WHERE number = ?`);

  /** The search for an empty scope continues after this number. */
  let checkedTo = 0;
  /** Finds a scope without any record, not even of a deleted resource. */
  const findEmpty = (): number | undefined => {
    let numbers = selectEmpty.all(checkedTo);
    // Start over: scopes checked earlier may have become empty since.
    if (numbers.length === 0) numbers = selectEmpty.all(0);
    const found = numbers.find((number) => selectRecord.get(number) === undefined);
    checkedTo = found ?? numbers.at(-1) ?? 0;
    return found;
  };
  return (accountId: string, collectionId: string, ownerId: string): number => {
    const last = selectLast.get() ?? 0;
    if (last >= SCOPES_PER_ACCOUNT_MAX) {
      const empty = findEmpty();
      if (empty !== undefined) {
        reassign.run(collectionId, ownerId, empty);
        return empty;
      }
      if (last >= SCOPE_NUMBER_MAX) throw full(`${SCOPE_NUMBER_MAX} owners of all accounts`);
      if ((countOfAccount.get(accountId) ?? 0) >= SCOPES_PER_ACCOUNT_MAX)
        throw full(`${SCOPES_PER_ACCOUNT_MAX} owners of this account`);
    }
    return Number(insertScope.run(collectionId, ownerId).lastInsertRowid);
  };
}

function full(what: string): KbsyncError {
  return new KbsyncError(`the knowledge base has room for no more than ${what}`, {
    code: "store_full",
    hint: "An owner's space becomes free when all its documents are deleted and their records purged.",
  });
}

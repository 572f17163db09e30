import type { Pending } from "../../../../wire/search.ts";
import { rowOf, type RowRange } from "../../../index/rows.ts";
import { type Checked, countDocuments, type Lacking, SCOPES_MAX } from "../../search/checked-chunks.ts";
import { PENDING_CHUNKS_MAX, type PendingQuery } from "../../search-index.ts";
import type { Connection } from "../database/connection.ts";
import type { SearchTarget } from "../../search/search-target.ts";
import type { prepareScopes } from "./scopes.ts";

/** Rows checked in one step: takes some milliseconds. */
const STEP_ROWS = 4096;
/**
 * Prepares the count of the documents of a scope that wait; undefined: the same call continues. A row never loses its vectors of a
 * model while the model serves, so each chunk that has one is checked once.
 */
export function preparePending(
  db: Connection,
  scopes: ReturnType<typeof prepareScopes>,
): (query: PendingQuery) => Pending | undefined {
  const countQueued = db
    .prepare<[number], number>(
      "SELECT count(*) FROM resource WHERE scope = ? AND status = 'queued' AND status <> 'chunked' AND is_deleted = 0",
    )
    .pluck();
  const isQueued = db
    .prepare<[string, string], number>(
      "SELECT count(*) FROM resource WHERE id = ? AND account_id = ? AND status = 'queued' AND is_deleted = 0",
    )
    .pluck();
  const countLacking = prepareLacking(db);

  return ({ scope, fingerprint }) => {
    const target = scopes.find(scope);
    if (target === undefined) return { read: 0, embed: 0 };
    const isResource = "resourceId" in scope;
    const lacking = fingerprint === undefined ? { embed: 0 } : countLacking(target, !isResource, fingerprint);
    if (lacking === undefined) return undefined;
    const read = isResource ? isQueued.get(scope.resourceId, scope.accountId) : countQueued.get(target.scope);
    return { read: read ?? 0, ...lacking };
  };
}

/** Prepares the count of documents with a chunk that has no vector of a model. It returns undefined if it must go on. */
function prepareLacking(db: Connection) {
  const selectModel = db
    .prepare<[string], number>("SELECT number FROM embedding_model WHERE fingerprint = ?")
    .pluck();
  const selectNext = db
    .prepare<[number, number], number>("SELECT row FROM chunk WHERE row BETWEEN ? AND ? ORDER BY row LIMIT 1")
    .pluck();
  const selectLacking = db.prepare<RowRange & { readonly model: number; readonly limit: number }, Lacking>(`
    SELECT row, resource FROM chunk WHERE row BETWEEN @first AND @last
      AND NOT EXISTS (SELECT 1 FROM vector WHERE vector.row = chunk.row AND vector.model = @model)
    ORDER BY row LIMIT @limit`);
  const selectStale = db
    .prepare<[number, number], number>(
      `SELECT chunk.resource FROM stale_vector JOIN chunk USING (row) WHERE stale_vector.row BETWEEN ? AND ?
       LIMIT ${PENDING_CHUNKS_MAX}`,
    )
    .pluck();
  const checkedScopes = new Map<string, Checked>();

  const isLacking = (row: number, model: number): boolean =>
    selectLacking.get({ first: row, last: row, model, limit: 1 }) !== undefined;
  /** Checks the next chunks up to a row. Stops when it knows as many without a vector as are counted. */
  const checkNext = ({ row, lacking }: Checked, last: number, model: number): Checked => {
    const still = lacking.filter((each) => isLacking(each.row, model));
    const limit = PENDING_CHUNKS_MAX - still.length;
    const first = selectNext.get(row + 1, last);
    if (first === undefined) return { row: Math.max(row, last), lacking: still };
    const end = Math.min(last, first + STEP_ROWS - 1);
    const more = selectLacking.all({ first, last: end, model, limit });
    return { row: more.length < limit ? end : (more.at(-1)?.row ?? row), lacking: [...still, ...more] };
  };
  /** Returns what is known of a whole scope; undefined: more must be checked. */
  const lackingOfScope = (scope: number, last: number, model: number): readonly Lacking[] | undefined => {
    const key = `${scope} ${model}`;
    const before = checkedScopes.get(key) ?? { row: rowOf(scope, 0) - 1, lacking: [] };
    const checked = checkNext(before, last, model);
    checkedScopes.delete(key);
    checkedScopes.set(key, checked);
    const [oldest] = checkedScopes.keys();
    if (checkedScopes.size > SCOPES_MAX && oldest !== undefined) checkedScopes.delete(oldest);
    const isDone = checked.row >= last || checked.lacking.length >= PENDING_CHUNKS_MAX;
    return isDone ? checked.lacking : undefined;
  };

  return (
    { scope, nextSequence, range }: SearchTarget,
    isWholeScope: boolean,
    fingerprint: string,
  ): Omit<Pending, "read"> | undefined => {
    // No chunk has a vector of a model without a number.
    const model = selectModel.get(fingerprint) ?? -1;
    const lacking = isWholeScope
      ? lackingOfScope(scope, rowOf(scope, nextSequence) - 1, model)
      : selectLacking.all({ ...range, model, limit: 1 });
    if (lacking === undefined) return undefined;
    const stale = selectStale.all(range.first, range.last);
    return countDocuments([...lacking.map(({ resource }) => resource), ...stale]);
  };
}

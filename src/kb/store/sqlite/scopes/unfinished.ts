import { rowOf, type RowRange } from "../../../index/rows.ts";
import { UNFINISHED_CHUNKS_MAX, type Unfinished, type UnfinishedQuery } from "../../search-index.ts";
import type { Connection } from "../database/connection.ts";
import type { SearchTarget } from "../../search/search-target.ts";
import type { prepareScopes } from "./scopes.ts";

/** Rows checked in one step: takes some milliseconds. */
const STEP_ROWS = 4096;
/** Scopes whose progress is remembered. A forgotten one is checked from its first chunk. */
const SCOPES_MAX = 1000;

/** The chunks of a scope that were checked for vectors of a model. */
interface Checked {
  /** All chunks up to this row have a vector, except `lacking`. */
  readonly row: number;
  /** Ascending. */
  readonly lacking: readonly number[];
}

/**
 * Prepares the read of what is unfinished in a scope; undefined: the same call continues. A row never loses its vectors of a
 * model while the model serves, so each chunk that has one is checked once.
 */
export function prepareUnfinished(
  db: Connection,
  scopes: ReturnType<typeof prepareScopes>,
): (query: UnfinishedQuery) => Unfinished | undefined {
  const selectStates = db.prepare<[number], { waiting: number; failed: number }>(`
    SELECT count(*) FILTER (WHERE status = 'queued') AS waiting, count(*) FILTER (WHERE status = 'error') AS failed
    FROM resource WHERE scope = ? AND status <> 'chunked' AND is_deleted = 0`);
  const selectState = db.prepare<[string, string], { waiting: number; failed: number }>(`
    SELECT status = 'queued' AS waiting, status = 'error' AS failed
    FROM resource WHERE id = ? AND account_id = ? AND is_deleted = 0`);
  const selectLastJob = db.prepare<[], number | null>("SELECT max(number) FROM job").pluck();
  const hasJob = `EXISTS (SELECT 1 FROM job WHERE queue = 'ingest'
    AND job.account_id = resource.account_id AND job.name = resource.id AND job.number <= ?)`;
  const selectOlder = db
    .prepare<[number, number], number>(`
    SELECT EXISTS (SELECT 1 FROM resource WHERE scope = ? AND status <> 'chunked' AND is_deleted = 0 AND ${hasJob})`)
    .pluck();
  const selectOlderOne = db
    .prepare<[string, string, number], number>(`
    SELECT EXISTS (SELECT 1 FROM resource WHERE id = ? AND account_id = ? AND is_deleted = 0 AND ${hasJob})`)
    .pluck();
  const withoutVectors = prepareWithoutVectors(db);

  return ({ scope, vectors, upToJob = 0 }) => {
    const target = scopes.find(scope);
    if (target === undefined) return NOTHING;
    const isResource = "resourceId" in scope;
    const chunks = withoutVectors(target, !isResource, vectors);
    if (chunks === undefined) return undefined;
    const states = isResource
      ? selectState.get(scope.resourceId, scope.accountId)
      : selectStates.get(target.scope);
    const older = isResource
      ? selectOlderOne.get(scope.resourceId, scope.accountId, upToJob)
      : selectOlder.get(target.scope, upToJob);
    return {
      waiting: states?.waiting ?? 0,
      failed: states?.failed ?? 0,
      withoutVectors: chunks,
      lastJob: selectLastJob.get() ?? 0,
      isOlderWaiting: older === 1,
    };
  };
}

const NOTHING: Unfinished = { waiting: 0, failed: 0, withoutVectors: 0, lastJob: 0, isOlderWaiting: false };

/** Prepares the count of chunks without a vector of a model. It returns undefined if it must go on. */
function prepareWithoutVectors(db: Connection) {
  const selectModel = db
    .prepare<[string], number>("SELECT number FROM embedding_model WHERE fingerprint = ?")
    .pluck();
  const selectNext = db
    .prepare<[number, number], number>("SELECT row FROM chunk WHERE row BETWEEN ? AND ? ORDER BY row LIMIT 1")
    .pluck();
  const selectLacking = db
    .prepare<RowRange & { readonly model: number; readonly limit: number }, number>(`
    SELECT row FROM chunk WHERE row BETWEEN @first AND @last
      AND NOT EXISTS (SELECT 1 FROM vector WHERE vector.row = chunk.row AND vector.model = @model)
    ORDER BY row LIMIT @limit`)
    .pluck();
  const selectStale = db
    .prepare<[number, number], number>(
      `SELECT count(*) FROM (SELECT 1 FROM stale_vector WHERE row BETWEEN ? AND ? LIMIT ${UNFINISHED_CHUNKS_MAX})`,
    )
    .pluck();
  const checkedScopes = new Map<string, Checked>();

  const isLacking = (row: number, model: number): boolean =>
    selectLacking.get({ first: row, last: row, model, limit: 1 }) !== undefined;
  /** Checks the next chunks up to a row. Stops when it knows as many without a vector as are counted. */
  const checkNext = ({ row, lacking }: Checked, last: number, model: number): Checked => {
    const still = lacking.filter((each) => isLacking(each, model));
    const limit = UNFINISHED_CHUNKS_MAX - still.length;
    const first = selectNext.get(row + 1, last);
    if (first === undefined) return { row: Math.max(row, last), lacking: still };
    const end = Math.min(last, first + STEP_ROWS - 1);
    const more = selectLacking.all({ first, last: end, model, limit });
    return { row: more.length < limit ? end : (more.at(-1) ?? row), lacking: [...still, ...more] };
  };
  /** Returns what is known of a whole scope; undefined: more must be checked. */
  const lackingOfScope = (scope: number, last: number, model: number): readonly number[] | undefined => {
    const key = `${scope} ${model}`;
    const before = checkedScopes.get(key) ?? { row: rowOf(scope, 0) - 1, lacking: [] };
    const checked = checkNext(before, last, model);
    checkedScopes.delete(key);
    checkedScopes.set(key, checked);
    const [oldest] = checkedScopes.keys();
    if (checkedScopes.size > SCOPES_MAX && oldest !== undefined) checkedScopes.delete(oldest);
    const isDone = checked.row >= last || checked.lacking.length >= UNFINISHED_CHUNKS_MAX;
    return isDone ? checked.lacking : undefined;
  };

  return (
    { scope, nextSequence, range, rangeChunks }: SearchTarget,
    isWholeScope: boolean,
    vectors: UnfinishedQuery["vectors"],
  ): number | undefined => {
    if (vectors === "none") return 0;
    const model = vectors === "no-model" ? undefined : selectModel.get(vectors.fingerprint);
    if (model === undefined) return Math.min(rangeChunks, UNFINISHED_CHUNKS_MAX);
    const lacking = isWholeScope
      ? lackingOfScope(scope, rowOf(scope, nextSequence) - 1, model)
      : selectLacking.all({ ...range, model, limit: UNFINISHED_CHUNKS_MAX });
    if (lacking === undefined) return undefined;
    const stale = selectStale.get(range.first, range.last) ?? 0;
    return Math.min(lacking.length + stale, UNFINISHED_CHUNKS_MAX);
  };
}

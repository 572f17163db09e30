import { rowsOfScope } from "../../../index/rows.ts";
import type { StoredVector } from "../../search/means.ts";
import type { Transaction } from "../database/connections.ts";

/** Chunks of a scope from which it has an HNSW index of its own. A scan of the codes of fewer takes milliseconds. */
export const HNSW_CHUNKS_MIN = 500_000;
/** Most dimensions of a `halfvec` in an index, and most candidates of a search of one. */
const DIMENSIONS_MAX = 4000;
const CANDIDATES_MAX = 1000;
/** The names of all such indexes begin so; their scope, model and dimensions follow. */
const PREFIX = "vector_hnsw_";

/**
 * Selects such indexes as `Existing`. An operator may have others with similar names. A build holds this lock on its table, which every
 * role sees, even if the process that began it has ended; so does vacuum, after which an index is dropped too.
 */
export const HNSW_INDEXES = `
  SELECT relname AS name, indexrelid::regclass::text AS quoted, indisvalid AS "isValid",
    EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'relation' AND relation = indrelid AND mode = 'ShareUpdateExclusiveLock'
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())) AS "isInProgress"
  FROM pg_inherits JOIN pg_index ON indrelid = inhrelid JOIN pg_class ON pg_class.oid = indexrelid
  WHERE inhparent = to_regclass('chunk_vector') AND relname ~ '^${PREFIX}[0-9]+_[0-9]+_[0-9]+$'`;

/** The vectors of one scope and one model, which have an index of their own. One of all scopes would miss what small ones have. */
export interface HnswTarget {
  readonly accountId: string;
  readonly scope: number;
  readonly model: number;
}

/**
 * Returns `count` candidates for the nearest chunks of a scope, of the snapshot of the transaction. Undefined if the scope has no index for
 * that, or the index found fewer: until a vacuum, chunks that were removed or moved also count as candidates. From pgvector 0.8 on, the
 * search of the index itself goes on for more.
 */
export async function findCandidates(
  tx: Transaction,
  target: HnswTarget,
  vector: Float32Array,
  count: number,
): Promise<StoredVector[] | undefined> {
  const dimensions = vector.length;
  if (count > CANDIDATES_MAX || dimensions > DIMENSIONS_MAX) return undefined;
  const found = await tx.get(
    `SELECT set_config('hnsw.ef_search', @count::integer::text, true), (
      SELECT set_config('hnsw.iterative_scan', 'relaxed_order', true) FROM pg_extension
      WHERE extname = 'vector' AND extversion ~ '^(0[.]([89]|[1-9][0-9])|[1-9])')
    FROM pg_index WHERE indexrelid = to_regclass(@name) AND indisvalid`,
    { count, name: `${prefixOf(target)}${dimensions}` },
  );
  if (found === undefined) return undefined;
  const { first, last } = rowsOfScope(target.scope);
  const rows = await tx.all<{ readonly row: number; readonly value: Buffer }>(
    `SELECT row, value FROM chunk_vector
    WHERE account_id = @accountId AND row BETWEEN @first AND @last AND model = @model
    ORDER BY ${expressionOf(dimensions)} <=> @vector::halfvec(${dimensions}) LIMIT @count`,
    { ...target, first, last, count, vector: `[${vector.join(",")}]` },
  );
  return rows.length < count ? undefined : rows.map(({ row, value }) => [row, value]);
}

/** Returns the beginning of the name of an index, which its dimensions follow. */
function prefixOf({ scope, model }: HnswTarget): string {
  return `${PREFIX}${scope}_${model}_`;
}

/** What the index holds of a row. PostgreSQL uses the index only for the same expression. */
function expressionOf(dimensions: number): string {
  return `(vector_as_halfvec(value, ${dimensions})::halfvec(${dimensions}))`;
}

/** Returns the statement that builds an index in a part of the table of vectors, while reads and writes go on. */
function creationOf(target: HnswTarget, dimensions: number, part: string): string {
  const { first, last } = rowsOfScope(target.scope);
  const account = target.accountId.replaceAll("'", "''");
  return `CREATE INDEX CONCURRENTLY ${prefixOf(target)}${dimensions} ON ${part}
    USING hnsw (${expressionOf(dimensions)} halfvec_cosine_ops)
    WHERE account_id = '${account}' AND row BETWEEN ${first} AND ${last} AND model = ${target.model}`;
}

/**
 * Creates the function of the indexes. The bytes of a stored vector are exact as numbers of 16 bits; its scale changes no cosine. Null, so in no
 * index, for other dimensions: a write must not fail for an index. Restoring a dump and vacuum set other search paths.
 */
const FUNCTION = `CREATE OR REPLACE FUNCTION vector_as_halfvec(value bytea, dimensions integer) RETURNS halfvec
  LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE COST 10000 SET search_path FROM CURRENT AS $$
  DECLARE numbers real[];
  BEGIN
    IF octet_length(value) <> dimensions + 4 THEN RETURN NULL; END IF;
    SELECT array_agg(((get_byte(value, at + 3) + 128) % 256 - 128)::real) INTO numbers FROM generate_series(1, dimensions) AS at;
    RETURN numbers::halfvec;
  END $$`;

/** An index that exists, perhaps not completely. */
interface Existing {
  readonly name: string;
  /** The name as statements have it. */
  readonly quoted: string;
  readonly isValid: boolean;
  readonly isInProgress: boolean;
}

/** A scope that is large enough to have an index, or to keep one. */
interface Large extends HnswTarget {
  readonly chunks: number;
}

/** Statements to run one by one, outside a transaction. */
export interface HnswStep {
  readonly isBuild: boolean;
  readonly statements: readonly string[];
}

/**
 * Returns the next step that makes the indexes what they should be. Undefined: there is nothing to do, or a build is in progress, or
 * the extension is missing, or the user of the database does not own its tables.
 */
export async function nextStep(tx: Transaction, chunksMin: number): Promise<HnswStep | undefined> {
  const able = await tx.get(
    `SELECT 1 FROM pg_class WHERE oid = to_regclass('chunk_vector') AND relkind = 'p'
      AND pg_has_role(relowner, 'USAGE') AND to_regtype('halfvec') IS NOT NULL`,
  );
  if (able === undefined) return undefined;
  const existing = await tx.all<Existing>(HNSW_INDEXES);
  // The server goes on with a build whose process has ended.
  if (existing.some(({ isValid, isInProgress }) => !isValid && isInProgress)) return undefined;
  const large = await tx.all<Large>(
    `SELECT scope.number AS scope, collection.account_id AS "accountId", serving_model AS model, chunks
    FROM scope JOIN collection ON collection.id = collection_id
    WHERE chunks >= @chunksKept::bigint AND serving_model IS NOT NULL ORDER BY chunks DESC`,
    // Half, so that a scope whose size varies does not build it again and again.
    { chunksKept: Math.ceil(chunksMin / 2) },
  );
  const useless = existing.find(
    ({ name, isValid }) => !isValid || !large.some((target) => name.startsWith(prefixOf(target))),
  );
  if (useless !== undefined)
    return { isBuild: false, statements: [`DROP INDEX CONCURRENTLY IF EXISTS ${useless.quoted}`] };
  for (const target of large) {
    if (target.chunks < chunksMin) break;
    if (existing.some(({ name }) => name.startsWith(prefixOf(target)))) continue;
    const sample = await sampleOf(tx, target);
    if (sample === undefined || sample.dimensions > DIMENSIONS_MAX) continue;
    return { isBuild: true, statements: [FUNCTION, creationOf(target, sample.dimensions, sample.part)] };
  }
  return undefined;
}

/** Returns the dimensions of a scope's vectors, and the part of the table where they are. */
async function sampleOf(
  tx: Transaction,
  { accountId, scope, model }: HnswTarget,
): Promise<{ readonly dimensions: number; readonly part: string } | undefined> {
  const { first, last } = rowsOfScope(scope);
  return tx.get(
    `SELECT octet_length(value) - 4 AS dimensions, tableoid::regclass::text AS part FROM chunk_vector
    WHERE account_id = @accountId AND row BETWEEN @first AND @last AND model = @model LIMIT 1`,
    { accountId, first, last, model },
  );
}

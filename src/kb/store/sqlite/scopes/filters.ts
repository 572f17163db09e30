import type { Filter, RangeBound } from "../../../../wire/filter.ts";
import type { Connection } from "../database/connection.ts";
import { storedValue } from "./metadata-writes.ts";
import { makeRowSet, type RowSet } from "../../../index/row-set.ts";
import { rowOf } from "../../../index/rows.ts";

/** Memory for the rows of filters used lately. A filter over a million chunks takes 125 KB. */
const BYTES_MAX = 16 * 1024 * 1024;

/** What a filter is looked up in. */
export interface FilteredScope {
  readonly scope: number;
  readonly nextSequence: number;
  /** Differs when the filter may find other chunks. */
  readonly refiltered: number;
}

/**
 * Prepares filters: the resources of a scope that fit, found in the index of metadata values, as the set of their chunks.
 * Costs as much as resources fit, and as conditions under it find; nothing where the same filter came before and the
 * scope has not changed.
 */
export function prepareFilters(db: Connection): (place: FilteredScope, filter: Filter) => RowSet {
  const kept = new Map<
    string,
    { readonly rows: RowSet; readonly refiltered: number; readonly size: number }
  >();
  let bytes = 0;

  const read = ({ scope, nextSequence }: FilteredScope, filter: Filter): RowSet => {
    const query = queryOf(scope, filter);
    const ranges = db
      .prepare<unknown[], [first: number, chunks: number]>(
        `SELECT first_row, chunks FROM resource WHERE scope = ? AND is_deleted = 0 AND number IN (${query.sql})`,
      )
      .raw()
      .all(scope, ...query.values);
    const base = rowOf(scope, 0);
    return makeRowSet(
      nextSequence,
      ranges.map(([first, chunks]) => ({ first: first - base, last: first - base + chunks - 1 })),
    );
  };

  return (place, filter) => {
    const key = `${place.scope} ${JSON.stringify(filter)}`;
    const found = kept.get(key);
    if (found !== undefined) {
      kept.delete(key);
      bytes -= found.rows.bytes + key.length;
    }
    const { refiltered, nextSequence: size } = place;
    const isRight = found?.refiltered === refiltered && found.size === size;
    const entry = found !== undefined && isRight ? found : { rows: read(place, filter), refiltered, size };
    kept.set(key, entry);
    bytes += entry.rows.bytes + key.length;
    for (const [oldest, { rows }] of kept) {
      if (bytes <= BYTES_MAX || kept.size === 1) break;
      kept.delete(oldest);
      bytes -= rows.bytes + oldest.length;
    }
    return entry.rows;
  };
}

interface Query {
  /** Gives one column: numbers of resources. */
  readonly sql: string;
  readonly values: readonly (string | number)[];
}

/** The resources of a scope that fit a filter, each condition as one look-up in the index. */
function queryOf(scope: number, filter: Filter): Query {
  switch (filter.kind) {
    case "and": {
      // What is to be left out is taken off what the others find, not off everything.
      const wanted = filter.of.filter(({ kind }) => kind !== "not").map((each) => queryOf(scope, each));
      const unwanted = filter.of.flatMap((each) => (each.kind === "not" ? [queryOf(scope, each.of)] : []));
      const base = wanted.length === 0 ? everything(scope) : joined(wanted, "INTERSECT");
      return unwanted.length === 0 ? base : joined([base, ...unwanted], "EXCEPT");
    }
    case "or":
      return filter.of.length === 0
        ? { sql: "SELECT NULL WHERE 0", values: [] }
        : joined(
            filter.of.map((each) => queryOf(scope, each)),
            "UNION",
          );
    case "not":
      return joined([everything(scope), queryOf(scope, filter.of)], "EXCEPT");
    case "in": {
      const stored = filter.values.map(storedValue);
      const kinds = [...new Set(stored.map(({ kind }) => kind))];
      return joined(
        kinds.map((kind) => {
          const values = stored.filter((each) => each.kind === kind).map(({ value }) => value);
          const sql = `${AT_PATH} AND value IN (${values.map(() => "?").join(", ")})`;
          return { sql, values: [scope, filter.path, kind, ...values] };
        }),
        "UNION",
      );
    }
    case "range": {
      const [first] = filter.bounds;
      const kind = typeof first?.value === "number" ? "n" : "s";
      const bounds = filter.bounds.map(({ operator }) => `AND value ${SQL_OPERATORS[operator]} ?`);
      const values = filter.bounds.map(({ value }) => value);
      return { sql: `${AT_PATH} ${bounds.join(" ")}`, values: [scope, filter.path, kind, ...values] };
    }
  }
}

const AT_PATH = "SELECT resource FROM metadata_value WHERE scope = ? AND path = ? AND kind = ?";

const SQL_OPERATORS: Readonly<Record<RangeBound["operator"], string>> = {
  gt: ">",
  gte: ">=",
  lt: "<",
  lte: "<=",
};

function everything(scope: number): Query {
  return { sql: "SELECT number FROM resource WHERE scope = ? AND is_deleted = 0", values: [scope] };
}

/** SQLite reads a row of such words from left to right and takes no brackets, so that each part is a subquery. */
function joined(queries: readonly Query[], word: "INTERSECT" | "UNION" | "EXCEPT"): Query {
  if (queries.length === 1 && queries[0] !== undefined) return queries[0];
  return {
    sql: queries.map(({ sql }) => `SELECT * FROM (${sql})`).join(` ${word} `),
    values: queries.flatMap(({ values }) => values),
  };
}

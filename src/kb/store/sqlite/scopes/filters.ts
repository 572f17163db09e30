import { type Filter, isDate, type RangeBound } from "../../../../wire/filter.ts";
import type { Connection } from "../database/connection.ts";
import { storedValue } from "../../rows/metadata-values.ts";
import { makeRowSet, type RowSet } from "../../../index/row-set.ts";
import { rowOf } from "../../../index/rows.ts";

/** Memory for the results of recent filters. A filter over a million chunks takes 125 KB. */
const BYTES_MAX = 16 * 1024 * 1024;

/** The scope that a filter is applied to. */
export interface FilteredScope {
  readonly scope: number;
  readonly nextSequence: number;
  /** Changes when the filter may match other chunks. */
  readonly refiltered: number;
}

/**
 * Prepares filters: finds the matching resources of a scope in the index of metadata values, and returns the set of their
 * chunks. The cost grows with the resources that the filter and each of its conditions match. The result is cached until
 * the scope changes.
 */
export function prepareFilters(db: Connection): (target: FilteredScope, filter: Filter) => RowSet {
  const cache = new Map<
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

  return (target, filter) => {
    const key = `${target.scope} ${JSON.stringify(filter)}`;
    const found = cache.get(key);
    if (found !== undefined) {
      cache.delete(key);
      bytes -= found.rows.bytes + key.length;
    }
    const { refiltered, nextSequence: size } = target;
    const isCurrent = found?.refiltered === refiltered && found.size === size;
    const entry = found !== undefined && isCurrent ? found : { rows: read(target, filter), refiltered, size };
    cache.set(key, entry);
    bytes += entry.rows.bytes + key.length;
    for (const [oldest, { rows }] of cache) {
      if (bytes <= BYTES_MAX || cache.size === 1) break;
      cache.delete(oldest);
      bytes -= rows.bytes + oldest.length;
    }
    return entry.rows;
  };
}

export interface ResourceQuery {
  /** Returns one column: numbers of resources. */
  readonly sql: string;
  readonly values: readonly (string | number)[];
}

/** Builds the query for the resources of a scope that match a filter; each condition is one index lookup. */
export function queryOf(scope: number, filter: Filter): ResourceQuery {
  switch (filter.kind) {
    case "and": {
      // Subtracts the unwanted resources from the result of the other conditions instead of from all resources.
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
      if (filter.bounds.every(({ value }) => isDate(value))) return datesWithin(scope, filter);
      const [first] = filter.bounds;
      const kind = typeof first?.value === "number" ? "n" : "s";
      const bounds = filter.bounds.map(({ operator }) => `AND value ${SQL_OPERATORS[operator]} ?`);
      const values = filter.bounds.map(({ value }) => value);
      return { sql: `${AT_PATH} ${bounds.join(" ")}`, values: [scope, filter.path, kind, ...values] };
    }
  }
}

/** Builds the query for the dates within bounds, which compare as moments, whatever their time zones and precision. */
function datesWithin(scope: number, { path, bounds }: Extract<Filter, { kind: "range" }>): ResourceQuery {
  const conditions = bounds.map(({ operator, value }) => {
    const moment = `unixepoch(value, 'subsec') ${SQL_OPERATORS[operator]} unixepoch(?, 'subsec')`;
    // Time zones move a date by less than a day, so this reads only the dates near the range from the index.
    return operator === "gt" || operator === "gte"
      ? { sql: `${moment} AND value >= ifnull(date(?, '-1 day'), '')`, value }
      : { sql: `${moment} AND value < ifnull(date(?, '+2 days'), ':')`, value };
  });
  return {
    sql: [AT_PATH, DATE, ...conditions.map(({ sql }) => sql)].join(" AND "),
    values: [scope, path, "s", ...conditions.flatMap(({ value }) => [value, value])],
  };
}

/** Without it, SQLite would read a number in a string as a Julian day. */
const DATE = "value GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]*'";

const AT_PATH = "SELECT resource FROM metadata_value WHERE scope = ? AND path = ? AND kind = ?";

const SQL_OPERATORS: Readonly<Record<RangeBound["operator"], string>> = {
  gt: ">",
  gte: ">=",
  lt: "<",
  lte: "<=",
};

function everything(scope: number): ResourceQuery {
  return { sql: "SELECT number FROM resource WHERE scope = ? AND is_deleted = 0", values: [scope] };
}

/** Combines queries. SQLite evaluates compound operators from left to right without brackets, so each part is a subquery. */
function joined(queries: readonly ResourceQuery[], word: "INTERSECT" | "UNION" | "EXCEPT"): ResourceQuery {
  if (queries.length === 1 && queries[0] !== undefined) return queries[0];
  return {
    sql: queries.map(({ sql }) => `SELECT * FROM (${sql})`).join(` ${word} `),
    values: queries.flatMap(({ values }) => values),
  };
}

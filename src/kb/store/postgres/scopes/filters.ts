import { makeByteCache, type ByteCache } from "../../../index/words/byte-cache.ts";
import { makeRowSet, type RowSet } from "../../../index/row-set.ts";
import { rowOf } from "../../../index/rows.ts";
import { type Filter, isDate, type RangeBound } from "../../../../wire/filter.ts";
import { storedValue } from "../../rows/metadata-values.ts";
import type { Transaction } from "../database/connections.ts";

/** Memory for the results of recent filters. A filter over a million chunks takes 125 KB. */
const BYTES_MAX = 16 * 1024 * 1024;

/** The scope that a filter is applied to. */
interface FilteredScope {
  readonly accountId: string;
  readonly scope: number;
  readonly nextSequence: number;
  /** Changes when the filter may match other chunks. */
  readonly refiltered: number;
}

/** The chunks that filters let through, by scope, filter and state of the scope. */
export type FilterCache = ByteCache<string, RowSet>;

export function makeFilterCache(): FilterCache {
  return makeByteCache(BYTES_MAX);
}

/**
 * Finds the chunks that pass a filter. The cost grows with the resources that the filter and each of its conditions match. The result
 * is cached until the scope changes.
 */
export async function filterRows(
  tx: Transaction,
  cache: FilterCache,
  { accountId, scope, nextSequence, refiltered }: FilteredScope,
  filter: Filter,
): Promise<RowSet> {
  const key = `${scope} ${nextSequence} ${refiltered} ${JSON.stringify(filter)}`;
  const known = cache.get(key);
  if (known !== undefined) return known;
  const { sql, parameters } = await matchingResources(tx, { accountId, scope }, filter);
  const found = await tx.all<{ readonly first: number; readonly chunks: number }>(
    `SELECT first_row AS first, chunks FROM resource
    WHERE account_id = @accountId AND scope = @scope AND NOT is_deleted AND number IN (${sql})`,
    parameters,
  );
  const base = rowOf(scope, 0);
  const rows = makeRowSet(
    nextSequence,
    found.map(({ first, chunks }) => ({ first: first - base, last: first - base + chunks - 1 })),
  );
  cache.set(key, rows, rows.bytes + key.length);
  return rows;
}

/** A query for the numbers of resources. */
export interface ResourceQuery {
  readonly sql: string;
  readonly parameters: Readonly<Record<string, unknown>>;
}

/**
 * Builds the query for the resources of a scope that match a filter; each condition is one index lookup. The statement depends on the
 * shape of the filter alone: its values are parameters.
 */
async function matchingResources(
  tx: Transaction,
  of: { readonly accountId: string; readonly scope: number },
  filter: Filter,
): Promise<ResourceQuery> {
  const parameters: Record<string, unknown> = { ...of };
  const named = (value: unknown): string => {
    const name = `filter${Object.keys(parameters).length}`;
    parameters[name] = value;
    return `@${name}`;
  };
  const dated = new Map<Filter, readonly number[]>();
  for (const range of dateRangesOf(filter)) dated.set(range, await resourcesWithin(tx, of, range));
  return { sql: queryOf(filter, named, dated), parameters };
}

type Name = (value: unknown) => string;

const IN_SCOPE = "account_id = @accountId AND scope = @scope";
const EVERYTHING = `SELECT number FROM resource WHERE ${IN_SCOPE} AND NOT is_deleted`;

function queryOf(filter: Filter, named: Name, dated: ReadonlyMap<Filter, readonly number[]>): string {
  switch (filter.kind) {
    case "and": {
      // Subtracts the unwanted resources from the result of the other conditions instead of from all resources.
      const wanted = filter.of
        .filter(({ kind }) => kind !== "not")
        .map((each) => queryOf(each, named, dated));
      const unwanted = filter.of.flatMap((each) =>
        each.kind === "not" ? [queryOf(each.of, named, dated)] : [],
      );
      const base = wanted.length === 0 ? EVERYTHING : joined(wanted, "INTERSECT");
      return unwanted.length === 0 ? base : joined([base, ...unwanted], "EXCEPT");
    }
    case "or":
      return filter.of.length === 0
        ? "SELECT NULL::bigint WHERE false"
        : joined(
            filter.of.map((each) => queryOf(each, named, dated)),
            "UNION",
          );
    case "not":
      return joined([EVERYTHING, queryOf(filter.of, named, dated)], "EXCEPT");
    case "in": {
      const stored = filter.values.map(storedValue);
      const kinds = [...new Set(stored.map(({ kind }) => kind))];
      return joined(
        kinds.map((kind) => {
          const values = stored.filter((each) => each.kind === kind).map(({ value }) => value);
          if (kind !== "s")
            return `${atPath(filter.path, kind, named)} AND number = ANY (${named(values)}::double precision[])`;
          // The index has the beginnings of texts.
          const starts = values.map((value) => prefixOf(String(value)));
          return `${atPath(filter.path, kind, named)} AND ${PREFIX} = ANY (${named(starts)}::text[])
            AND text = ANY (${named(values)}::text[])`;
        }),
        "UNION",
      );
    }
    case "range": {
      const known = dated.get(filter);
      if (known !== undefined) return `SELECT unnest(${named(known)}::bigint[])`;
      const [first] = filter.bounds;
      const isNumber = typeof first?.value === "number";
      const bounds = filter.bounds.map(({ operator, value }) =>
        isNumber
          ? `number ${SQL_OPERATORS[operator]} ${named(value)}::double precision`
          : textBound(operator, String(value), named),
      );
      return [atPath(filter.path, isNumber ? "n" : "s", named), ...bounds].join(" AND ");
    }
  }
}

/** Characters of a text that the index has; see schema.ts. */
const PREFIX_CHARS = 200;
const PREFIX = `left(text, ${PREFIX_CHARS})`;

function prefixOf(text: string): string {
  // Two UTF-16 units at most make a character.
  return Array.from(text.slice(0, 2 * PREFIX_CHARS))
    .slice(0, PREFIX_CHARS)
    .join("");
}

/** A bound of texts. Their beginnings, which the index has, are ordered as they are. */
function textBound(operator: RangeBound["operator"], value: string, named: Name): string {
  const isLower = operator === "gt" || operator === "gte";
  return `${PREFIX} ${isLower ? ">=" : "<="} ${named(prefixOf(value))} AND text ${SQL_OPERATORS[operator]} ${named(value)}`;
}

type Range = Extract<Filter, { kind: "range" }>;

/** The ranges in a filter whose bounds all are dates. */
function dateRangesOf(filter: Filter): Range[] {
  switch (filter.kind) {
    case "and":
    case "or":
      return filter.of.flatMap(dateRangesOf);
    case "not":
      return dateRangesOf(filter.of);
    case "in":
      return [];
    case "range":
      return filter.bounds.every(({ value }) => isDate(value)) ? [filter] : [];
  }
}

/** Finds the resources with a date within bounds. Dates compare as moments, whatever their time zones and precision. */
async function resourcesWithin(
  tx: Transaction,
  of: { readonly accountId: string; readonly scope: number },
  { path, bounds }: Range,
): Promise<number[]> {
  const limits = bounds.map(({ operator, value }) => ({ operator, ms: momentOf(String(value)) ?? NaN }));
  const all = (operators: readonly string[]): number[] =>
    limits.flatMap(({ operator, ms }) => (operators.includes(operator) && !Number.isNaN(ms) ? ms : []));
  const lower = Math.max(...all(["gt", "gte"]));
  const upper = Math.min(...all(["lt", "lte"]));
  // Time zones move a date by less than a day, so this reads only the dates near the range from the index.
  const found = await tx.all<{ readonly resource: number; readonly text: string }>(
    `SELECT resource, text FROM metadata_value
    WHERE ${IN_SCOPE} AND path = @path AND kind = 's' AND text IS NOT NULL AND ${PREFIX} >= @from AND ${PREFIX} < @to`,
    {
      ...of,
      path,
      from: Number.isFinite(lower) ? dayOf(lower - DAY_MS) : "0",
      to: Number.isFinite(upper) ? dayOf(upper + 2 * DAY_MS) : ":",
    },
  );
  return found.flatMap(({ resource, text }) => {
    const ms = momentOf(text);
    return ms !== undefined && limits.every((limit) => isWithin(ms, limit)) ? resource : [];
  });
}

const DAY_MS = 86_400_000;
const LAST_DAY_MS = Date.UTC(9999, 11, 31);

/** Returns the date of a moment, as texts begin with it. */
function dayOf(ms: number): string {
  if (ms > LAST_DAY_MS) return ":";
  const date = new Date(ms);
  return date.getUTCFullYear() < 0 ? "0" : date.toISOString().slice(0, "0000-00-00".length);
}

function isWithin(
  ms: number,
  { operator, ms: limit }: { readonly operator: RangeBound["operator"]; readonly ms: number },
): boolean {
  switch (operator) {
    case "gt":
      return ms > limit;
    case "gte":
      return ms >= limit;
    case "lt":
      return ms < limit;
    case "lte":
      return ms <= limit;
  }
}

/** Dates that SQLite reads (https://sqlite.org/lang_datefunc.html), of which this store matches the same. */
const DATE =
  /^(\d{4})-(\d\d)-(\d\d)(?:[\sT]*|[\sT]+(\d\d):(\d\d)(?::(\d\d)(\.\d+)?)?\s*(?:[Zz]|([+-])(\d\d):(\d\d))?\s*)$/;

/** Returns the moment of a date in milliseconds; undefined for another text. A date without a time zone is in UTC. */
function momentOf(text: string): number | undefined {
  const found = DATE.exec(text);
  if (found === null) return undefined;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = found
    .slice(1, 7)
    .map((part) => Number(part ?? 0));
  const fraction = Number(found[7] ?? 0);
  const [zoneHour, zoneMinute] = [Number(found[9] ?? 0), Number(found[10] ?? 0)];
  if (month < 1 || month > 12 || day < 1 || day > 31) return undefined;
  if (hour > 24 || minute > 59 || second > 59 || zoneHour > 14 || zoneMinute > 59) return undefined;
  const moment = new Date(0);
  // Unlike Date.UTC, this leaves the years below 100 as they are.
  moment.setUTCFullYear(year, month - 1, day);
  moment.setUTCHours(hour, minute, second, Math.round(fraction * 1000));
  const zone = (zoneHour * 60 + zoneMinute) * 60_000;
  return moment.getTime() - (found[8] === "-" ? -zone : zone);
}

function atPath(path: string, kind: string, named: Name): string {
  return `SELECT resource FROM metadata_value WHERE ${IN_SCOPE} AND path = ${named(path)} AND kind = ${named(kind)}
    AND text IS ${kind === "s" ? "NOT NULL" : "NULL"}`;
}

const SQL_OPERATORS: Readonly<Record<RangeBound["operator"], string>> = {
  gt: ">",
  gte: ">=",
  lt: "<",
  lte: "<=",
};

/** Combines queries, each in brackets. */
function joined(queries: readonly string[], word: "INTERSECT" | "UNION" | "EXCEPT"): string {
  return queries.length === 1 ? (queries[0] ?? "") : queries.map((sql) => `(${sql})`).join(` ${word} `);
}

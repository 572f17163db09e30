import type { z } from "zod";

/** Conditions per filter; each costs an index lookup. */
const FILTER_CONDITIONS_MAX = 64;
/** Levels of and, or and not. */
const FILTER_LEVELS_MAX = 8;
/** Values per `in`. */
const FILTER_VALUES_MAX = 100;
/** Longest path and string in characters; metadata has no longer ones. */
export const PATH_CHARS_MAX = 260;
const STRING_CHARS_MAX = 1024;

/** A value of a resource's metadata that a condition can name. */
export type MetadataScalar = string | number | boolean | null;

/** Restricts a search to resources by their metadata. */
export type Filter =
  | { readonly kind: "and"; readonly of: readonly Filter[] }
  | { readonly kind: "or"; readonly of: readonly Filter[] }
  | { readonly kind: "not"; readonly of: Filter }
  /** The value at the path, or an item of the list there, is one of these. */
  | { readonly kind: "in"; readonly path: string; readonly values: readonly MetadataScalar[] }
  /** A value of the same type at the path lies within the bounds. Bounds that all are dates match only dates. */
  | { readonly kind: "range"; readonly path: string; readonly bounds: readonly RangeBound[] };

export interface RangeBound {
  readonly operator: RangeOperator;
  readonly value: string | number;
}

type RangeOperator = "gt" | "gte" | "lt" | "lte";
const RANGE_OPERATORS: ReadonlySet<string> = new Set(["gt", "gte", "lt", "lte"]);
type Path = readonly PropertyKey[];

/**
 * Parses a filter, for `z.transform`. `{lang: "en", year: {gte: 2020}}` requires all of its conditions; `and` and `or` take
 * lists of filters, `not` takes one. A condition is a value, `{in: [values]}` or bounds. Problems name their field.
 */
export function readFilter(given: unknown, context: z.RefinementCtx): Filter {
  let conditions = 0;
  let isRefused = false;
  const refuse = (path: Path, message: string): Filter => {
    if (!isRefused) context.addIssue({ code: "custom", path: [...path], message });
    isRefused = true;
    return NOTHING;
  };

  const readObject = (path: Path, value: unknown, level: number): Filter => {
    if (level > FILTER_LEVELS_MAX) return refuse(path, `expected at most ${FILTER_LEVELS_MAX} levels`);
    if (!isObject(value)) return refuse(path, "expected an object");
    const of = Object.entries(value).map(([key, inner]) => readEntry([...path, key], key, inner, level));
    if (of.length === 0) return refuse(path, "expected at least one condition");
    return of.length === 1 && of[0] !== undefined ? of[0] : { kind: "and", of };
  };
  const readEntry = (path: Path, key: string, value: unknown, level: number): Filter => {
    if (key === "not") return { kind: "not", of: readObject(path, value, level + 1) };
    if (key === "and" || key === "or") {
      if (!Array.isArray(value)) return refuse(path, "expected a list of filters");
      if (value.length === 0) return refuse(path, "expected at least one filter");
      return { kind: key, of: value.map((item, at) => readObject([...path, at], item, level + 1)) };
    }
    conditions += 1;
    if (conditions > FILTER_CONDITIONS_MAX)
      return refuse([], `expected at most ${FILTER_CONDITIONS_MAX} conditions`);
    if (key === "" || key.length > PATH_CHARS_MAX) return refuse(path, "expected a path of metadata");
    return readCondition(path, key, value);
  };
  const readCondition = (path: Path, key: string, value: unknown): Filter => {
    if (!isObject(value)) return { kind: "in", path: key, values: [readScalar(path, value)] };
    const operators = Object.keys(value);
    if (operators.length === 1 && operators[0] === "in") {
      const values = value["in"];
      const at = [...path, "in"];
      if (!Array.isArray(values)) return refuse(at, "expected a list of values");
      if (values.length === 0) return refuse(at, "expected at least one value");
      if (values.length > FILTER_VALUES_MAX)
        return refuse(at, `expected at most ${FILTER_VALUES_MAX} values`);
      return { kind: "in", path: key, values: values.map((item, index) => readScalar([...at, index], item)) };
    }
    return readRange(path, key, value, operators);
  };
  const readRange = (
    path: Path,
    key: string,
    value: Readonly<Record<string, unknown>>,
    operators: readonly string[],
  ): Filter => {
    const unknown = operators.find((operator) => !RANGE_OPERATORS.has(operator));
    if (unknown !== undefined)
      return refuse([...path, unknown], "expected in alone, or some of gt, gte, lt and lte");
    if (operators.length === 0) return refuse(path, "expected a value, in, or some of gt, gte, lt and lte");
    const bounds = operators.map((operator): RangeBound => {
      const bound = readScalar([...path, operator], value[operator]);
      if (typeof bound !== "string" && typeof bound !== "number")
        refuse([...path, operator], "expected a number or a string");
      return { operator: operator as RangeOperator, value: bound as string | number }; // checked, else refused
    });
    if (new Set(bounds.map((bound) => typeof bound.value)).size > 1)
      return refuse(path, "expected bounds that are all numbers or all strings");
    return { kind: "range", path: key, bounds };
  };
  const readScalar = (path: Path, value: unknown): MetadataScalar => {
    if (typeof value === "string") {
      if (value.length > STRING_CHARS_MAX) refuse(path, `expected at most ${STRING_CHARS_MAX} characters`);
      return value.toWellFormed();
    }
    if (typeof value === "number" || typeof value === "boolean" || value === null) return value;
    refuse(path, "expected a string, a number, true, false or null");
    return null;
  };

  return readObject([], given, 1);
}

const DATE = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)?)?$/;

/** Whether a value is an RFC 3339 date, with or without a time. A missing time is midnight, a missing time zone UTC. */
export function isDate(value: unknown): value is string {
  return typeof value === "string" && DATE.test(value) && !Number.isNaN(Date.parse(value));
}

/** Placeholder for a refused filter. */
const NOTHING: Filter = { kind: "or", of: [] };

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * Row numbers of chunks. Each owner's part of a collection is a scope with a number; its chunks have the row numbers
 * `scope × 2^32 + sequence`. So a scope is one range of rows in every table, and the chunks of a resource version,
 * written together, are a range within it. Row numbers are never reused; a scope that passes to another owner continues its
 * sequence. 2^21 scopes of 2^32 chunks fit into the safe integers of JavaScript.
 */
const ROWS_PER_SCOPE = 2 ** 32;
export const SCOPE_NUMBER_MAX = 2 ** 21 - 1;
export const SEQUENCE_MAX = ROWS_PER_SCOPE - 1;

export function rowOf(scope: number, sequence: number): number {
  return scope * ROWS_PER_SCOPE + sequence;
}

export function scopeOfRow(row: number): number {
  return Math.floor(row / ROWS_PER_SCOPE);
}

/** An inclusive range of row numbers; empty if `last` is below `first`. */
export interface RowRange {
  readonly first: number;
  readonly last: number;
}

/** Returns the range of all rows of a scope. */
export function rowsOfScope(scope: number): RowRange {
  return { first: rowOf(scope, 0), last: rowOf(scope, SEQUENCE_MAX) };
}

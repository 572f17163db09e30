/**
 * Row numbers of chunks. Every part of a collection that belongs to one owner is a scope with a number; its chunks
 * have the row numbers `scope × 2^32 + sequence`. So a scope is one range of row numbers in every posting list of
 * the index, and the chunks of one resource version, written together, are a range in it. Row numbers are never used
 * again (a scope that another owner takes over goes on counting): 2^32 chunks a scope and 2^21 scopes fit into the integers a JavaScript number holds exactly.
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

/** A range of row numbers, both ends inclusive; empty when `last` is below `first`. */
export interface RowRange {
  readonly first: number;
  readonly last: number;
}

/** All rows a scope can have. */
export function rowsOfScope(scope: number): RowRange {
  return { first: rowOf(scope, 0), last: rowOf(scope, SEQUENCE_MAX) };
}

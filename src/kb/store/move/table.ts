import { createHash } from "node:crypto";

/** The type of a column: an integer, a floating-point number, a text, true or false, bytes, or ids as a JSON array. */
export type ColumnType = "integer" | "number" | "text" | "boolean" | "bytes" | "ids";

/** A value as both stores return it. */
export type Value = string | number | boolean | Buffer | null;

/** A row by the names of its columns. */
export type Row = Readonly<Record<string, Value>>;

/** Where a page of a table ends: the values of its key. */
export type Position = readonly (string | number)[];

/** A column of the key by which pages follow each other: an expression, and its type. */
export interface KeyColumn {
  readonly sql: string;
  readonly type: ColumnType;
}

/** A table that both stores have, and how each of them has it. The table has the alias `t` in every expression. */
export interface Table {
  readonly name: string;
  readonly columns: Readonly<Record<string, ColumnType>>;
  /** Rows of a page. Pages also end after `PAGE_BYTES` if the store knows sizes. */
  readonly pageRows: number;
  readonly sqlite: {
    /** The rest of FROM after the table. */
    readonly join: string;
    readonly key: readonly KeyColumn[];
    /** Expressions of columns that SQLite has under another name, or derives. */
    readonly select: Readonly<Record<string, string>>;
    /** Columns to write, with expressions of the parameters; null: the column is derived, and not written. */
    readonly insert: Readonly<Record<string, string | null>>;
  };
  readonly postgres: {
    readonly name: string;
    readonly key: readonly KeyColumn[];
    /** How many columns of the key an index has, if it lacks the others. */
    readonly indexed: number;
  };
}

/** Digest of any number of rows in any order. */
export interface Digest {
  readonly rows: number;
  readonly sum: string;
}

/** Adds up rows to their digest. Neither store sorts the rows of a table as the other one. */
export function openDigest(columns: Table["columns"]): { add(row: Row): void; end(): Digest } {
  const names = Object.keys(columns);
  let rows = 0;
  let sum = 0n;
  return {
    add(row) {
      rows += 1;
      sum = BigInt.asUintN(SUM_BITS, sum + hashOf(names.map((name) => row[name] ?? null)));
    },
    end: () => ({ rows, sum: sum.toString(16) }),
  };
}

const SUM_BITS = 128;

function hashOf(values: readonly Value[]): bigint {
  const hash = createHash("sha256");
  // Lengths and types in front, so that no two rows have the same bytes.
  hash.update(
    JSON.stringify(values.map((value) => (Buffer.isBuffer(value) ? { bytes: value.length } : value))),
  );
  for (const value of values) if (Buffer.isBuffer(value)) hash.update(value);
  const digest = hash.digest();
  return (digest.readBigUInt64BE(0) << 64n) | digest.readBigUInt64BE(8);
}

/** Size of a row in memory, about. */
export function bytesOf(row: Row): number {
  let bytes = 0;
  for (const value of Object.values(row)) {
    bytes += Buffer.isBuffer(value) || typeof value === "string" ? value.length : 8;
  }
  return bytes;
}

import type { Sqlite } from "./open.ts";

/** A prepared statement, as a function of its parameters in their order. */
type Prepared<V extends unknown[], T> = (...values: V) => T;

/** Returns what prepares statements of a database. */
export function statementsOf(db: Sqlite) {
  return {
    /** A statement that changes rows. */
    run: <V extends unknown[]>(sql: string): Prepared<V, void> => {
      const statement = db.prepare(sql);
      return (...values) => void statement.run(...values);
    },
    /** The same; returns the number of changed rows. */
    change: <V extends unknown[]>(sql: string): Prepared<V, number> => {
      const statement = db.prepare(sql);
      return (...values) => statement.run(...values).changes;
    },
    /** An insert of one row, whose id it returns. */
    insert: <V extends unknown[]>(sql: string): Prepared<V, number> => {
      const statement = db.prepare(sql);
      return (...values) => Number(statement.run(...values).lastInsertRowid);
    },
    /** The first row of a query. */
    get: <V extends unknown[], R>(sql: string): Prepared<V, R | undefined> => {
      const statement = db.prepare<unknown[], R>(sql);
      return (...values) => statement.get(...values);
    },
    /** All rows of a query. */
    all: <V extends unknown[], R>(sql: string): Prepared<V, R[]> => {
      const statement = db.prepare<unknown[], R>(sql);
      return (...values) => statement.all(...values);
    },
    /** The first column of a query's first row. */
    value: <V extends unknown[], T>(sql: string): Prepared<V, T | undefined> => {
      const statement = db.prepare<unknown[], T>(sql).pluck();
      return (...values) => statement.get(...values);
    },
    /** The first column of all rows of a query. */
    values: <V extends unknown[], T>(sql: string): Prepared<V, T[]> => {
      const statement = db.prepare<unknown[], T>(sql).pluck();
      return (...values) => statement.all(...values);
    },
    /** Whether a query has a row. */
    has: <V extends unknown[]>(sql: string): Prepared<V, boolean> => {
      const statement = db.prepare(sql);
      return (...values) => statement.get(...values) !== undefined;
    },
  };
}

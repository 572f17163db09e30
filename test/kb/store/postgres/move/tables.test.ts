import Database from "better-sqlite3";
import { Client } from "pg";
import { describe, expect, it } from "vitest";
import { COUNTERS, TABLES } from "../../../../../src/kb/store/move/tables.ts";
import { SCHEMA } from "../../../../../src/kb/store/sqlite/database/schema.ts";
import { isSkipped, newDatabase } from "../databases.ts";
import { ONLY_POSTGRES, ONLY_SQLITE } from "./not-copied.ts";

// Who adds a table or a column to a schema decides here whether `kbsync move` copies it.
describe("the tables that are copied", () => {
  it("the tables that are copied are all of SQLite, with all columns, but for those that are named with a reason", () => {
    const db = new Database(":memory:");
    for (const script of SCHEMA.scripts) db.exec(script);
    const columns = db
      .prepare<[], string>(
        `SELECT m.name || '.' || c.name FROM sqlite_schema AS m, pragma_table_info(m.name) AS c
        WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%'`,
      )
      .pluck()
      .all();
    const copied = TABLES.flatMap(({ name, columns: all, sqlite }) =>
      Object.keys(all)
        .filter((column) => sqlite.insert[column] !== null)
        .map((column) => `${name}.${column}`),
    );
    expect(columns.filter((name) => !isNamed(ONLY_SQLITE, name)).toSorted()).toEqual(copied.toSorted());
    const kept = db
      .prepare<[], string>("SELECT name FROM sqlite_schema WHERE sql LIKE '%AUTOINCREMENT%'")
      .pluck()
      .all();
    expect(kept.filter((name) => ONLY_SQLITE[name] === undefined).toSorted()).toEqual(
      COUNTERS.flatMap(({ table, isRemembered }) => (isRemembered ? table : [])).toSorted(),
    );
    db.close();
  });

  it.skipIf(isSkipped())(
    "the tables that are copied are all of PostgreSQL, with all columns and sequences, but for those that are named with a reason",
    async () => {
      const client = new Client({ connectionString: await newDatabase() });
      await client.connect();
      const { rows } = await client.query<{ readonly name: string }>(
        `SELECT relname || '.' || attname AS name FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
        WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
          AND attnum > 0 AND NOT attisdropped`,
      );
      const sequences = await client.query<{ readonly name: string }>(
        "SELECT relname AS name FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'S'",
      );
      await client.end();
      const copied = TABLES.flatMap(({ postgres, columns }) =>
        Object.keys(columns).map((column) => `${postgres.name}.${column}`),
      );
      const columns = rows.map(({ name }) => name).filter((name) => !isNamed(ONLY_POSTGRES, name));
      expect(columns.toSorted()).toEqual(copied.toSorted());
      expect(sequences.rows.map(({ name }) => name).toSorted()).toEqual(
        COUNTERS.map(({ table, sequence }) => sequence ?? `${table}_number_seq`).toSorted(),
      );
    },
  );
});

function isNamed(names: Readonly<Record<string, string>>, column: string): boolean {
  return names[column] !== undefined || names[column.split(".")[0] ?? ""] !== undefined;
}

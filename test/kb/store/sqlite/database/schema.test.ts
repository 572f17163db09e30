import Database from "better-sqlite3";
import { expect, it } from "vitest";
import { SCHEMA } from "../../../../../src/kb/store/sqlite/database/schema.ts";

it.each(["resource", "chunk"])("the schema has an index for every reference to a purged %s", (parent) => {
  const db = new Database(":memory:");
  for (const script of SCHEMA.scripts) db.exec(script);
  const references = db
    .prepare<[string], { child: string; column: string }>(`
      SELECT child.name AS child, "from" AS "column" FROM sqlite_schema AS child, pragma_foreign_key_list(child.name)
      WHERE child.type = 'table' AND "table" = ?`)
    .all(parent);
  expect(references).not.toEqual([]);
  for (const { child, column } of references) {
    const plan = db
      .prepare<[], string>(`EXPLAIN QUERY PLAN SELECT 1 FROM ${child} WHERE ${column} = 1`)
      .raw()
      .all()
      .join();
    expect({ child, plan }).toEqual({ child, plan: expect.stringContaining("SEARCH") });
  }
  db.close();
});

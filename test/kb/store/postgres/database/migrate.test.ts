import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { openDatabase, type Database } from "../../../../../src/kb/store/postgres/database/database.ts";
import {
  bringUpToDate,
  migrate,
  readVersions,
  refuseUnknown,
  type Versions,
} from "../../../../../src/kb/store/postgres/database/migrate.ts";
import type { Schema } from "../../../../../src/kb/store/postgres/database/schema.ts";
import { openPostgresStore } from "../../../../../src/kb/store/postgres/open.ts";
import { isSkipped, newDatabase, query } from "../databases.ts";

const FIRST = { minimum: 1, sql: "CREATE TABLE one (a integer)" };
/** Adds a column, so that programs of version 1 still work. */
const EXPAND = { minimum: 1, sql: "ALTER TABLE one ADD COLUMN b integer" };
/** Removes what only programs of version 1 use. */
const CONTRACT = { minimum: 2, sql: "ALTER TABLE one DROP COLUMN a" };
const schemaOf = (...scripts: Schema["scripts"]): Schema => ({ baseline: 1, scripts });

describe.skipIf(isSkipped())("the migration of a database", () => {
  let url: string;
  let database: Database;
  beforeAll(async () => {
    url = await newDatabase("template0");
    database = openDatabase(url);
  });
  afterAll(() => database.close());
  beforeEach(() => query(url, "DROP TABLE IF EXISTS one, schema_version"));

  const to = (schema: Schema, on = database): Promise<Versions | undefined> =>
    on.run("write", "", (tx) => migrate(tx, schema));
  const versions = (): Promise<Versions | undefined> => database.run("snapshot", "", readVersions);

  it("the migration of a database is done by one of two processes that start at the same time", async () => {
    const other = openDatabase(url);
    const schema = schemaOf(FIRST);
    const before = await Promise.all([to(schema), to(schema, other)]);
    await other.close();
    expect(before.toSorted()).toEqual([{ minimum: 1, maximum: 1 }, undefined]);
  });

  it("the migration of a database leads an older database to the version of the program, and says which programs still work", async () => {
    await to(schemaOf(FIRST));
    await to(schemaOf(FIRST, EXPAND));
    expect(await versions()).toEqual({ minimum: 1, maximum: 2 });
    expect(() => refuseUnknown({ minimum: 1, maximum: 2 }, "db", schemaOf(FIRST))).not.toThrow();
    await to(schemaOf(FIRST, EXPAND, CONTRACT));
    expect(await versions()).toEqual({ minimum: 2, maximum: 3 });
    expect(() => refuseUnknown({ minimum: 2, maximum: 3 }, "db", schemaOf(FIRST))).toThrow(/newer kbsync/);
    expect(() => refuseUnknown({ minimum: 2, maximum: 3 }, "db", schemaOf(FIRST, EXPAND))).not.toThrow();
    await expect(to(schemaOf(FIRST))).rejects.toMatchObject({ code: "store_newer" });
  });

  it("leaves a newer database that the program works with as it is", async () => {
    await to(schemaOf(FIRST, EXPAND));
    await to(schemaOf(FIRST));
    expect(await versions()).toEqual({ minimum: 1, maximum: 2 });
  });

  it("counts from the baseline, and refuses tables from before it with advice and leaves them as they are", async () => {
    await to(schemaOf(FIRST));
    const later: Schema = { baseline: 2, scripts: [{ minimum: 2, sql: "CREATE TABLE two (a integer)" }] };
    const expected = {
      code: "store_older",
      message: expect.stringMatching(
        /before the first release: .* version 1, .* version 2 and later/,
      ) as string,
      hint: expect.stringContaining("Create another database") as string,
    };
    await expect(to(later)).rejects.toMatchObject(expected);
    expect(() => refuseUnknown({ minimum: 1, maximum: 1 }, "db", later)).toThrow(
      expect.objectContaining(expected) as Error,
    );
    expect(await versions()).toEqual({ minimum: 1, maximum: 1 });
    await query(url, "DROP TABLE one, schema_version");
    await to({ baseline: 2, scripts: [{ ...FIRST, minimum: 2 }] });
    expect(await versions()).toEqual({ minimum: 2, maximum: 2 });
    await to({
      baseline: 2,
      scripts: [
        { ...FIRST, minimum: 2 },
        { ...EXPAND, minimum: 2 },
      ],
    });
    expect(await versions()).toEqual({ minimum: 2, maximum: 3 });
  });

  it("changes nothing if a script fails", async () => {
    await to(schemaOf(FIRST));
    await expect(to(schemaOf(FIRST, EXPAND, FIRST))).rejects.toMatchObject({ code: "store_failed" });
    expect(await versions()).toEqual({ minimum: 1, maximum: 1 });
  });

  it("starts of several processes on an empty database create its tables once", async () => {
    const fresh = await newDatabase("template0");
    const stores = await Promise.all([openPostgresStore(fresh), openPostgresStore(fresh)]);
    const accounts = await Promise.all(stores.map(({ records }) => records.ensureAccount("local")));
    expect(new Set(accounts.map(({ id }) => id)).size).toBe(1);
    await Promise.all(stores.map((store) => store.close()));
  });

  it("a start brings an older database up to date, and leaves a newer one that it works with", async () => {
    await bringUpToDate(database, schemaOf(FIRST));
    await bringUpToDate(database, schemaOf(FIRST, EXPAND));
    expect(await versions()).toEqual({ minimum: 1, maximum: 2 });
    await bringUpToDate(database, schemaOf(FIRST));
    await bringUpToDate(database, schemaOf(FIRST, EXPAND, CONTRACT));
    await expect(bringUpToDate(database, schemaOf(FIRST))).rejects.toMatchObject({ code: "store_newer" });
  });

  it("a start refuses a database with tables of another program", async () => {
    await query(url, "CREATE TABLE one (a integer)");
    await expect(openPostgresStore(url)).rejects.toMatchObject({ code: "store_foreign" });
  });
});

import { mkdtempSync, existsSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { Client } from "pg";
import { afterAll, describe, expect, it, vi } from "vitest";
import { moveBetween, moveStore } from "../../../../../src/kb/store/move/move.ts";
import type { MoveTarget } from "../../../../../src/kb/store/move/side.ts";
import { TABLES } from "../../../../../src/kb/store/move/tables.ts";
import { openPostgresSource, openPostgresTarget } from "../../../../../src/kb/store/postgres/move-side.ts";
import { openPostgresStore } from "../../../../../src/kb/store/postgres/open.ts";
import { openSqliteSource, openSqliteTarget } from "../../../../../src/kb/store/sqlite/move-side.ts";
import { openSqliteStore } from "../../../../../src/kb/store/sqlite/open.ts";
import type { Store } from "../../../../../src/kb/store/store.ts";
import { indexContract } from "../../index-contract.ts";
import { recordsContract } from "../../records-contract.ts";
import { WAIT } from "../../../../wait.ts";
import { isSkipped, newDatabase, query } from "../databases.ts";
import { addRecords, addRest, readAll } from "./filled.ts";
import { ONLY_SQLITE } from "./not-copied.ts";

const folder = mkdtempSync(join(tmpdir(), "kbsync-move-"));
const path = join(folder, "kb.sqlite");
const indexPath = join(folder, "index.sqlite");
const options = { signal: new AbortController().signal };

afterAll(() => rmSync(folder, { recursive: true }));

/** Opens the store that the tests copy, and temporary ones for tests of a suite that need one alone. */
function openFilled(file: string): () => Promise<Store> {
  let isFirst = true;
  return () => {
    const given = isFirst ? { path: file } : {};
    isFirst = false;
    return openSqliteStore(given);
  };
}

// The suites leave stores with records of all kinds.
describe.skipIf(isSkipped())("stores to copy", () => {
  recordsContract("SQLite, to be copied", openFilled(path));
  indexContract("SQLite, to be copied", openFilled(indexPath));
});

describe.skipIf(isSkipped())("a copy of a store", { timeout: 240_000 }, () => {
  let url = "";

  it("a copy of a store has records of every table", async () => {
    await addRest(path);
    const dbs = [path, indexPath].map((file) => new Database(file, { readonly: true }));
    const hasRows = (name: string) => (db: Database.Database) =>
      db.prepare(`SELECT 1 FROM ${name} LIMIT 1`).get() !== undefined;
    const empty = TABLES.filter(({ name }) => !dbs.some(hasRows(name)));
    for (const db of dbs) db.close();
    expect(empty.map(({ name }) => name)).toEqual([]);
  });

  it.each([
    ["of many documents and searches", indexPath],
    ["of all kinds of records", path],
  ])("a copied store is equal in PostgreSQL, and again in SQLite: %s", async (_, file) => {
    const before = readFileSync(file);
    url = await newDatabase();
    const moved = await moveToPostgres(file, url);
    expect(moved).toMatchObject({ wasResumed: false, from: file });
    expect(moved.documents).toBeGreaterThan(100);
    expect(readFileSync(file).equals(before)).toBe(true);

    const back = `${file}-back`;
    rmSync(back, { force: true });
    const returned = await moveFromPostgres(url, back);
    expect(returned.tables).toEqual(moved.tables);
    expect(dump(back)).toEqual(dump(file));
    expect(existsSync(`${back}.moving`)).toBe(false);

    const stores = [
      await openSqliteStore({ path: file }),
      await openPostgresStore(url),
      await openSqliteStore({ path: back }),
    ];
    const read = [];
    for (const store of stores) {
      read.push(await readAll(store));
      await store.close();
    }
    const [original, database, again] = read;
    expect(original?.hits).toBeGreaterThan(20);
    expect(database).toEqual(original);
    expect(again).toEqual(original);
  });

  it("takes new records with numbers that nothing had", async () => {
    const store = await openPostgresStore(url);
    try {
      const account = await store.records.ensureAccount("new");
      await addRecords(store, account.id, 100);
      const [batch] = await store.records.batches(account.id);
      expect(batch).toMatchObject({ pending: 2 });
    } finally {
      await store.close();
    }
  });

  it("a copy of a store goes on where it was interrupted, whatever page that was, and no service starts on it before", async () => {
    const database = await newDatabase();
    const pages = await copyUntil(database, Infinity);
    expect(pages).toBeGreaterThan(TABLES.length);
    const resumed = await newDatabase();
    let after = 0;
    for (const stop of [1, 2, Math.floor(pages / 3), Math.floor(pages / 2)]) {
      after += await copyUntil(resumed, stop);
      await expect(openPostgresStore(resumed)).rejects.toMatchObject({ code: "store_unfinished" });
    }
    const moved = await moveToPostgres(path, resumed);
    expect(moved.wasResumed).toBe(true);
    await (await openPostgresStore(resumed)).close();

    const back = join(folder, "resumed.sqlite");
    await expect(copyFrom(openSqliteTarget(back), 20)).rejects.toThrow("ended");
    expect(existsSync(back)).toBe(false);
    expect(await copyFrom(openSqliteTarget(back), Infinity)).toBeGreaterThan(0);
    expect(dump(back)).toEqual(dump(path));
  });

  it("refuses a target with records, and the unfinished copy of another store", async () => {
    await expect(moveToPostgres(path, url)).rejects.toMatchObject({ code: "move_occupied" });
    await expect(moveFromPostgres(url, path)).rejects.toMatchObject({ code: "move_occupied" });

    const database = await newDatabase();
    await copyUntil(database, 3);
    const other = join(folder, "other.sqlite");
    const store = await openSqliteStore({ path: other });
    await store.records.ensureAccount("other");
    await store.close();
    await expect(moveToPostgres(other, database)).rejects.toMatchObject({ code: "move_occupied" });
    await expect(moveFromPostgres(database, join(folder, "none.sqlite"))).rejects.toMatchObject({
      code: "store_unfinished",
    });
  });

  it("refuses a database that a service uses", async () => {
    const database = await newDatabase();
    const store = await openPostgresStore(database);
    const client = new Client({ connectionString: database });
    await client.connect();
    try {
      // As a service does. The connections that it writes and reads by close after 10 s without work.
      store.notices?.listen({ onNotice: () => undefined, onMissed: () => undefined });
      await vi.waitFor(async () => {
        const { rowCount } = await client.query(
          "SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'kbsync listener'",
        );
        expect(rowCount).toBe(1);
      }, WAIT);
      // Those close at once.
      await client.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'kbsync'",
      );
      await expect(moveToPostgres(path, database)).rejects.toMatchObject({ code: "move_in_use" });
    } finally {
      await client.end();
      await store.close();
    }
  });

  it.each([
    ["a text that differs", "UPDATE chunk SET text = text || '.' WHERE row = (SELECT min(row) FROM chunk)"],
    [
      "a vector that differs",
      "UPDATE chunk_vector SET value = value || '\\x00' WHERE row = (SELECT min(row) FROM chunk_vector)",
    ],
    ["a record that is missing", "DELETE FROM document_change WHERE ordinal = 1"],
  ])("notices %s, and stays unfinished", async (_, statement) => {
    const database = await newDatabase();
    await copyUntil(database, Infinity, false);
    await query(database, statement);
    await expect(moveToPostgres(path, database)).rejects.toMatchObject({ code: "move_differs" });
    await expect(openPostgresStore(database)).rejects.toMatchObject({ code: "store_unfinished" });
  });
});

const moveToPostgres = (file: string, to: string) =>
  moveBetween(
    () => openSqliteSource(file),
    () => openPostgresTarget(to),
    options,
  );

const moveFromPostgres = (from: string, file: string) =>
  moveBetween(
    () => openPostgresSource(from),
    () => openSqliteTarget(file),
    options,
  );

/** Copies at most so many pages, and then ends as a process that is killed; `isCompared`: to the end. Returns the number of pages. */
async function copyUntil(database: string, pages: number, isCompared = true): Promise<number> {
  const target = await openPostgresTarget(database);
  let count = 0;
  const counting: MoveTarget = {
    ...target,
    add: async (...given) => {
      if (count >= pages) throw new Error("ended");
      count += 1;
      await target.add(...given);
    },
    count: async (...given) => {
      if (!isCompared) throw new Error("ended");
      await target.count(...given);
    },
  };
  const source = openSqliteSource(path);
  try {
    await moveStore(source, counting, options);
  } catch (error) {
    if (!(error instanceof Error && error.message === "ended")) throw error;
  } finally {
    await source.close();
    await target.close();
  }
  return count;
}

async function copyFrom(target: MoveTarget, pages: number): Promise<number> {
  const source = openSqliteSource(path);
  let count = 0;
  try {
    await moveStore(
      source,
      {
        ...target,
        add: async (...given) => {
          if (count >= pages) throw new Error("ended");
          count += 1;
          await target.add(...given);
        },
      },
      options,
    );
    return count;
  } finally {
    await source.close();
    await target.close();
  }
}

/** All tables of a store file, without what is not copied. */
function dump(file: string): Record<string, unknown[]> {
  const db = new Database(file, { readonly: true });
  const tables: Record<string, unknown[]> = {};
  for (const { name } of TABLES) {
    const rows = db.prepare<[], Record<string, unknown>>(`SELECT * FROM ${name}`).all();
    tables[name] = rows
      .map((row) =>
        JSON.stringify(
          Object.fromEntries(
            Object.entries(row).filter(
              ([column]) =>
                ONLY_SQLITE[`${name}.${column}`] === undefined ||
                name === "metadata_value" ||
                name === "word_page",
            ),
          ),
        ),
      )
      .toSorted();
  }
  tables["sqlite_sequence"] = db
    .prepare<[], { name: string }>("SELECT name, seq FROM sqlite_sequence ORDER BY name")
    .all()
    .filter(({ name }) => ONLY_SQLITE[name] === undefined);
  db.close();
  return tables;
}

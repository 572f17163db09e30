import Database from "better-sqlite3";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { openSqliteStore } from "../../../../src/kb/store/sqlite/open.ts";
import { MIGRATIONS } from "../../../../src/kb/store/sqlite/database/schema.ts";

const ACCOUNT = "a".repeat(24);
const TOKEN = "T".repeat(43);
const FAR = "2030-01-01T00:00:00.000Z";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "kbsync-migrate-"));
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

it.each(["resource", "chunk"])("what refers to a %s is found by an index when it goes", (parent) => {
  const db = new Database(":memory:");
  for (const script of MIGRATIONS) db.exec(script);
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

it("a store of the first version keeps its resources, and knows which files they use", async () => {
  const path = join(folder, "kb.sqlite");
  const db = new Database(path);
  db.exec(MIGRATIONS[0] ?? "");
  db.pragma("application_id = 1801614196");
  db.pragma("user_version = 1");
  db.exec(`
    INSERT INTO account VALUES ('${ACCOUNT}', 'local');
    INSERT INTO collection VALUES ('c', '${ACCOUNT}', 'fastest');
    INSERT INTO scope (number, collection_id, owner_id, resources) VALUES (1, 'c', 'ann', 1);
    INSERT INTO resource (id, account_id, scope, origin, title, description, url, head, settings, created_at, updated_at,
      first_row, chunks)
    VALUES ('r', '${ACCOUNT}', 1, 'file', 'T', '', 'http://host/base/files/x/files/${TOKEN}/a%20b.txt', 'text', '{}',
      '2026-01-01', '2026-01-01', 0, 0);
    INSERT INTO stored_file VALUES ('${TOKEN}', '${ACCOUNT}', 'a b.txt', 'text/plain', 1, 'x', '2026-01-01');
    INSERT INTO stored_file VALUES ('unused', '${ACCOUNT}', 'c.txt', 'text/plain', 1, 'x', '2026-01-01');
    INSERT INTO kept_answer (account_id, key, body_sha256, status, body, kept_ms)
    VALUES ('${ACCOUNT}', 'k', 'x', 201, 'resource r', 1000),
      ('${ACCOUNT}', 'whole', 'x', 200, '{"success":true,"data":{"_id":"r","content":"text"}}', 1000);
  `);
  db.close();
  const store = await openSqliteStore({ path });
  try {
    expect(await store.resource({ accountId: ACCOUNT, id: "r" })).toMatchObject({
      content: "text",
      version: 1,
      revision: 1,
      status: "chunked",
      metadata: {},
    });
    expect(await store.unusedFiles(FAR, 10)).toEqual(["unused"]);
    expect(await store.recall(ACCOUNT, "k", 2000)).toMatchObject({ body: "resource r" });
    expect((await store.recall(ACCOUNT, "whole", 2000))?.body).toContain("text");
    await store.deleteResource({ accountId: ACCOUNT, id: "r", nowIso: FAR });
    expect(await store.recall(ACCOUNT, "whole", 2000)).toMatchObject({ body: '{"resourceId":"r"}' });
  } finally {
    await store.close();
  }
});

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { expect, it } from "vitest";
import { openSqliteStore } from "../../../../src/kb/store/sqlite/open.ts";
import { MIGRATIONS } from "../../../../src/kb/store/sqlite/database/schema.ts";

it("keys of the first released schema get an id each, and work on", async () => {
  const folder = await mkdtemp(join(tmpdir(), "kbsync-migration-"));
  const path = join(folder, "kb.sqlite");
  const db = new Database(path);
  db.exec(MIGRATIONS[0] ?? "");
  db.pragma("application_id = 0x6b627374");
  db.pragma("user_version = 1");
  const account = "1".repeat(24);
  db.prepare("INSERT INTO account VALUES (?, 'local')").run(account);
  const insert = db.prepare(
    "INSERT INTO api_key VALUES (?, ?, ?, '[\"read\"]', '2026-01-01T00:00:00.000Z', NULL)",
  );
  insert.run("a".repeat(64), account, "one");
  insert.run("b".repeat(64), account, "two");
  db.close();

  const store = await openSqliteStore({ path });
  const keys = await store.keys(account);
  expect(keys.map(({ name }) => name).toSorted()).toEqual(["one", "two"]);
  expect(new Set(keys.map(({ id }) => id)).size).toBe(2);
  for (const key of keys)
    expect(key).toMatchObject({ id: expect.stringMatching(/^[0-9a-f]{24}$/), hint: "", revokedAt: null });
  expect(await store.keyByHash("a".repeat(64))).toMatchObject({ name: "one", scopes: ["read"] });
  await store.close();
  await rm(folder, { recursive: true });
});

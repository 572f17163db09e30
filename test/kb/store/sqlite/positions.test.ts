import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { afterEach, beforeEach, expect, it } from "vitest";
import { openSqliteStore } from "../../../../src/kb/store/sqlite/open.ts";
import { DEFAULT_SETTINGS } from "../../../../src/wire/primitives.ts";
import { byWords, NOW, OLD_INDEX, wordsOnly } from "../store-fixture.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "kbsync-positions-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

const CONTENT = "one\n\ntwo";
const FACTS = { id: "1".padStart(24, "0"), tier: "fastest", ownerId: "ann", origin: "content" } as const;
const TEXTS = {
  title: "T",
  description: "",
  url: null,
  content: CONTENT,
  locations: [{ start: 0, page: 1 }],
  settings: DEFAULT_SETTINGS,
};

/** Runs SQL on the store file while no store is open. */
function edit<T>(path: string, run: (db: Database.Database) => T): T {
  const db = new Database(path);
  try {
    return run(db);
  } finally {
    db.close();
  }
}

it("texts of a store of version 18 have neither lines nor a digest until their next update", async () => {
  const path = join(folder, "kb.sqlite");
  let store = await openSqliteStore({ path });
  const { id: accountId } = await store.records.ensureAccount("local");
  const at = { accountId, id: FACTS.id };
  await store.records.createResource({ ...at, ...FACTS, ...TEXTS, createdAt: NOW }, wordsOnly(CONTENT));
  await store.close();
  edit(path, (db) =>
    db.exec(`
      ALTER TABLE chunk DROP COLUMN line;
      ALTER TABLE resource DROP COLUMN sha256;
      ALTER TABLE resource DROP COLUMN locations;
      ALTER TABLE resource DROP COLUMN label;
      ALTER TABLE stored_file DROP COLUMN released_of;
      ALTER TABLE chat_turn DROP COLUMN reads;
      ALTER TABLE chat_turn DROP COLUMN shown;
      DROP INDEX chat_thread_of_agent;
      DROP TABLE batch_item;
      DROP TABLE account_spending;
      DROP TABLE batch;
      DROP INDEX resource_by_update;
      DROP INDEX resource_by_title;
      ALTER TABLE resource DROP COLUMN title_key;
      DROP INDEX resource_unfinished;
      DROP TABLE document_change;
      DROP TABLE spending;
      DROP TABLE usage;
      DROP TABLE code_run;
      DROP TABLE code_change;
      ALTER TABLE embedding_model DROP COLUMN mean;
      DROP TABLE console_session;
      ALTER TABLE api_key DROP COLUMN parent_id;
      ALTER TABLE api_key DROP COLUMN family_sha256;
      ALTER TABLE api_key DROP COLUMN refresh_sha256;
      ALTER TABLE api_key DROP COLUMN access_until;
      ALTER TABLE resource DROP COLUMN file_metadata;
      ${OLD_INDEX}
      PRAGMA user_version = 18`),
  );

  store = await openSqliteStore({ path });
  expect(await store.records.chunks(at)).toMatchObject({
    sha256: undefined,
    chunks: [
      { text: "one", line: undefined, locations: [] },
      { text: "two", line: undefined, locations: [] },
    ],
  });
  const scope = { accountId, resourceId: at.id };
  for (const [query, count] of [
    ["two", 1],
    ["T one", 2],
    ["three", 0],
  ] as const)
    expect((await byWords(store, { scope, query, limit: 5 })).hits).toHaveLength(count);
  await store.records.updateResource({ ...at, settings: DEFAULT_SETTINGS, nowIso: NOW }, wordsOnly(CONTENT));
  expect(await store.records.chunks(at)).toMatchObject({
    sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
    chunks: [{ line: 1 }, { line: 3 }],
  });
  await store.close();
});

it("a deleted resource keeps neither the digest nor the locations of its text", async () => {
  const path = join(folder, "kb.sqlite");
  const store = await openSqliteStore({ path });
  const { id: accountId } = await store.records.ensureAccount("local");
  await store.records.createResource({ accountId, ...FACTS, ...TEXTS, createdAt: NOW }, wordsOnly(CONTENT));
  await store.records.deleteResource({ accountId, id: FACTS.id, nowIso: NOW });
  await store.close();
  expect(edit(path, (db) => db.prepare("SELECT is_deleted, sha256, locations FROM resource").all())).toEqual([
    { is_deleted: 1, sha256: null, locations: null },
  ]);
});

it("the pages of a store of version 20 are locations", async () => {
  const path = join(folder, "kb.sqlite");
  let store = await openSqliteStore({ path });
  const { id: accountId } = await store.records.ensureAccount("local");
  await store.records.createResource({ accountId, ...FACTS, ...TEXTS, createdAt: NOW }, wordsOnly(CONTENT));
  await store.close();
  edit(path, (db) =>
    db.exec(`
      ALTER TABLE resource RENAME COLUMN locations TO pages;
      UPDATE resource SET pages = '[0,null,5]';
      ALTER TABLE stored_file DROP COLUMN released_of;
      ALTER TABLE chat_turn DROP COLUMN reads;
      ALTER TABLE chat_turn DROP COLUMN shown;
      DROP INDEX chat_thread_of_agent;
      DROP TABLE batch_item;
      DROP TABLE account_spending;
      DROP TABLE batch;
      DROP INDEX resource_by_update;
      DROP INDEX resource_by_title;
      ALTER TABLE resource DROP COLUMN title_key;
      DROP INDEX resource_unfinished;
      DROP TABLE document_change;
      DROP TABLE spending;
      DROP TABLE usage;
      DROP TABLE code_run;
      DROP TABLE code_change;
      ALTER TABLE embedding_model DROP COLUMN mean;
      DROP TABLE console_session;
      ALTER TABLE api_key DROP COLUMN parent_id;
      ALTER TABLE api_key DROP COLUMN family_sha256;
      ALTER TABLE api_key DROP COLUMN refresh_sha256;
      ALTER TABLE api_key DROP COLUMN access_until;
      ALTER TABLE resource DROP COLUMN file_metadata;
      ${OLD_INDEX}
      PRAGMA user_version = 20`),
  );
  store = await openSqliteStore({ path });
  const found = await store.records.chunks({ accountId, id: FACTS.id });
  expect(found?.chunks.map(({ locations }) => locations)).toEqual([
    [{ start: 0, page: 1 }],
    [{ start: 5, page: 3 }],
  ]);
  await store.close();
});

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { afterEach, beforeEach, expect, it } from "vitest";
import { openSqliteStore } from "../../../../src/kb/store/sqlite/open.ts";
import { DEFAULT_SETTINGS } from "../../../../src/wire/primitives.ts";
import { NOW, wordsOnly } from "../store-fixture.ts";

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

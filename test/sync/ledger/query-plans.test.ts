import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { openActivity } from "../../../src/sync/ledger/activity.ts";
import { openFiles } from "../../../src/sync/ledger/files/files.ts";
import { openIntents } from "../../../src/sync/ledger/intents/intents.ts";
import { openSqlite, type Sqlite } from "../../../src/sync/ledger/database/open.ts";
import { openSources } from "../../../src/sync/ledger/sources/sources.ts";

let dir: string;
let db: Sqlite;
/** Every statement that the ledger prepares. */
let statements: string[];

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "kbsync-plans-"));
  db = openSqlite(join(dir, "ledger.db"));
  statements = [];
  const prepare = db.prepare.bind(db);
  const recording = new Proxy(db, {
    get: (target, name) =>
      name === "prepare"
        ? (sql: string) => {
            statements.push(sql);
            return prepare(sql);
          }
        : (Reflect.get(target, name) as unknown),
  });
  for (const open of [openFiles, openIntents, openSources, openActivity]) open(recording);
});
afterEach(() => {
  db.close();
  rmSync(dir, { recursive: true });
});

/** SQLite's plan for a statement, a line per loop. */
function planOf(sql: string): string[] {
  const names = new Set(Array.from(sql.matchAll(/@(\w+)/g), ([, name = ""]) => name));
  const values = Array.from({ length: sql.split("?").length - 1 }, () => null);
  const rows = db
    .prepare<unknown[], { detail: string }>(`EXPLAIN QUERY PLAN ${sql}`)
    .all(
      ...values,
      ...(names.size === 0 ? [] : [Object.fromEntries([...names].map((name) => [name, null]))]),
    );
  return rows.map(({ detail }) => detail);
}

it("never reads all files to find some, however many the ledger has", () => {
  // The index of troubled files holds no agreed row, and that of mails holds only mails: reading all of it reads what
  // was requested.
  const scans = (sql: string): boolean =>
    planOf(sql).some((line) => line.startsWith("SCAN files") && !/INDEX files_(?:trouble|mails)$/.test(line));
  expect(statements.filter(scans)).toEqual([]);
});

it("reads a page of files by id, and a folder's by path", () => {
  const page = statements.find((sql) => sql.includes("id > ? AND id <= ?")) ?? "";
  expect(planOf(page)).toEqual(["SEARCH files USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"]);
  const folder = statements.find((sql) => sql.includes("path >= ? AND path < ?")) ?? "";
  expect(planOf(folder)).toEqual(["SEARCH files USING INDEX files_path (source=? AND path>? AND path<?)"]);
});

it.each([
  { name: "a path's row", part: "source = ? AND path = ? AND state NOT IN", index: "files_path" },
  { name: "rows of an inode", part: "source = ? AND ino = ?", index: "files_ino" },
  { name: "the owner of a resource", part: "FROM files WHERE doc_id = ?", index: "files_doc" },
  { name: "a tombstone", part: "FROM tombstones WHERE doc_id = ?", index: "sqlite_autoindex_tombstones_1" },
  { name: "held rows", part: "state IN ('held', 'doomed') AND state <> 'agreed'", index: "files_trouble" },
])("finds $name by an index", ({ part, index }) => {
  const found = statements.filter((sql) => sql.includes(part) && sql.trimStart().startsWith("SELECT"));
  expect(found).not.toEqual([]);
  for (const sql of found) expect(planOf(sql).join("\n")).toContain(`INDEX ${index}`);
});

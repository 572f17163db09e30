import Database from "better-sqlite3";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { prepareAnswerNotes } from "../../../../src/kb/store/sqlite/database/answer-notes.ts";
import { rowOf, SCOPE_NUMBER_MAX } from "../../../../src/kb/index/rows.ts";
import { SCHEMA } from "../../../../src/kb/store/sqlite/database/schema.ts";
import { prepareScopeWrites } from "../../../../src/kb/store/sqlite/scopes/scope-writes.ts";
import type { StoredFile } from "../../../../src/kb/store/files.ts";
import { NOW } from "../store-fixture.ts";

let db: Database.Database;
beforeEach(() => {
  db = new Database(":memory:");
  for (const script of SCHEMA.scripts) db.exec(script);
  for (const id of ["busy", "quiet"]) {
    db.exec(`INSERT INTO account VALUES ('${id}', '${id}')`);
    db.exec(`INSERT INTO collection VALUES ('${id}-c', '${id}', 'fastest')`);
  }
});
afterEach(() => db.close());

describe("notes of requests", () => {
  const file = (accountId: string): StoredFile => ({
    token: "t",
    accountId,
    name: "a",
    mediaType: "text/plain",
    sizeBytes: 1,
    sha256: "e".repeat(64),
    createdAt: NOW,
  });
  const keys = (accountId: string): string[] =>
    db
      .prepare<[string], string>("SELECT key FROM kept_answer WHERE account_id = ? ORDER BY number")
      .pluck()
      .all(accountId);

  it("evicts notes of an account without evicting those of another one", () => {
    const notes = prepareAnswerNotes(db, 3);
    const note = (accountId: string, key: string): void =>
      notes.file(file(accountId), { key, bodySha256: "x", status: 200, nowMs: 1000 });
    note("quiet", "first");
    for (let at = 1; at <= 20; at += 1) note("busy", `k${at}`);
    expect([keys("quiet"), keys("busy")]).toEqual([["first"], ["k18", "k19", "k20"]]);
    note("quiet", "second");
    expect([keys("quiet"), keys("busy")]).toEqual([
      ["first", "second"],
      ["k18", "k19", "k20"],
    ]);
  });
});

describe("numbers of owners", () => {
  const open = (ownerId: string, accountId = "quiet"): number =>
    prepareScopeWrites(db).open({ accountId, tier: "fastest", ownerId }).scope;
  const add = (number: number, account: string, owner: string, resources: number): void => {
    db.prepare(
      "INSERT INTO scope (number, collection_id, owner_id, next_sequence, resources) VALUES (?, ?, ?, 7, ?)",
    ).run(number, `${account}-c`, owner, resources);
  };

  it("reuses the number of an empty owner, with new row numbers for its chunks", () => {
    add(5, "busy", "left", 0);
    add(SCOPE_NUMBER_MAX, "busy", "last", 1);
    const scopes = prepareScopeWrites(db);
    const next = (ownerId: string): number =>
      scopes.open({ accountId: "quiet", tier: "fastest", ownerId }).scope;
    expect([next("new"), next("new")]).toEqual([5, 5]);
    scopes.count(5, 1, 0, 0);
    // A lower number, which becomes empty later.
    add(3, "busy", "left later", 0);
    expect(next("newer")).toBe(3);
    // Caches of the previous owner have row numbers that are never reused.
    expect(scopes.reserveRows(5, 1)).toBe(rowOf(5, 7));
  });

  it("does not reuse an owner's number while the record of a deleted resource refers to it", () => {
    add(5, "busy", "left", 0);
    add(SCOPE_NUMBER_MAX, "busy", "last", 1);
    db.exec(`
      INSERT INTO resource (id, account_id, scope, origin, title, description, url, head, settings, created_at,
        updated_at, first_row, chunks, is_deleted)
      VALUES ('r', 'busy', 5, 'content', 'T', '', NULL, '', '{}', '${NOW}', '${NOW}', 0, 0, 1)`);
    expect(() => open("new")).toThrow(expect.objectContaining({ code: "store_full" }));
    db.exec("DELETE FROM resource");
    expect(open("new")).toBe(5);
  });

  it("refuses owners above half of all numbers to one account, and leaves the rest to others", () => {
    const half = Math.ceil(SCOPE_NUMBER_MAX / 2);
    db.exec(`
      WITH RECURSIVE n (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM n WHERE number < ${half})
      INSERT INTO scope (number, collection_id, owner_id, resources) SELECT number, 'busy-c', number, 1 FROM n`);
    expect(() => open("new", "busy")).toThrow(expect.objectContaining({ code: "store_full" }));
    expect(open("new", "quiet")).toBe(half + 1);
  });
});

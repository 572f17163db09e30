import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { expect, it } from "vitest";
import { checkPostings } from "../../../../../src/kb/store/sqlite/check/check-postings.ts";
import { defineFunctions, SCHEMA } from "../../../../../src/kb/store/sqlite/database/schema.ts";
import { openForWriting } from "../../../../../src/kb/store/sqlite/database/connection.ts";
import { openSqliteStore } from "../../../../../src/kb/store/sqlite/open.ts";
import { openFixture } from "../../store-fixture.ts";

const folder = mkdtempSync(join(tmpdir(), "kbsync-parts-"));
const path = join(folder, "kb.sqlite");
const fixture = openFixture(() => openSqliteStore({ path }));

it("an upgrade indexes the words of an older store by their parts", async () => {
  await fixture.create("call getUserName here\n\nMöhren");
  await fixture.store.close();
  const old = new Database(path);
  // As an older release indexed the chunks.
  old.exec(`
    INSERT INTO chunk_index (chunk_index) VALUES ('delete-all');
    INSERT INTO chunk_index (rowid, terms)
      SELECT row, CASE WHEN text LIKE 'call%' THEN 'untitl call getusernam here ' ELSE 'untitl mohren ' END FROM chunk;
  `);
  // Only the script itself: later ones have run already.
  defineFunctions(old);
  old.exec(SCHEMA.scripts.find((script) => script.includes("index_entry")) ?? "");
  old.close();
  const db = openForWriting(path);
  expect(checkPostings(db)).toEqual([]);
  expect(db.prepare("SELECT count(*) FROM chunk_index WHERE chunk_index MATCH 'user'").pluck().get()).toBe(1);
  expect(db.prepare("SELECT count(*) FROM chunk_index WHERE chunk_index MATCH 'moehren'").pluck().get()).toBe(
    1,
  );
  db.close();
  rmSync(folder, { recursive: true });
});

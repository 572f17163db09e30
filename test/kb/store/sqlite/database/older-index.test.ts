import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { expect, it } from "vitest";
import { checkPostings } from "../../../../../src/kb/store/sqlite/check/check-postings.ts";
import { openForWriting } from "../../../../../src/kb/store/sqlite/database/connection.ts";
import { openSqliteStore } from "../../../../../src/kb/store/sqlite/open.ts";
import { byWords, OLD_INDEX, openFixture } from "../../store-fixture.ts";

const folder = mkdtempSync(join(tmpdir(), "kbsync-older-"));
const path = join(folder, "kb.sqlite");
const fixture = openFixture(() => openSqliteStore({ path }));

it("an upgrade indexes the words of an older store anew", async () => {
  const text = Array.from({ length: 300 }, (_, at) => `call getUserName ${at}`).join("\n\n");
  await fixture.create(`${text}\n\nMöhren`);
  const scope = await fixture.scope();
  await fixture.store.close();
  const old = new Database(path);
  old.exec(`${OLD_INDEX}
    ALTER TABLE chat_turn DROP COLUMN shown;
    DROP INDEX chat_thread_of_agent;
    DROP TABLE batch_item;
    DROP TABLE account_spending;
    DROP TABLE batch;
    DROP INDEX resource_by_update;
    DROP INDEX resource_by_title;
    ALTER TABLE resource DROP COLUMN title_key;
    DROP TABLE usage;
    DROP TABLE code_run;
    DROP TABLE code_change;
    ALTER TABLE embedding_model DROP COLUMN mean;`);
  old.pragma("user_version = 28");
  old.close();
  const db = openForWriting(path);
  expect(checkPostings(db)).toEqual([]);
  db.close();
  const store = await openSqliteStore({ path });
  for (const [query, count] of [
    ["user", 300],
    ["moehren", 1],
    ["getusername 299", 300],
  ] as const)
    expect((await byWords(store, { scope, query, limit: 1000 })).hits).toHaveLength(count);
  await store.close();
  rmSync(folder, { recursive: true });
});

import Database from "better-sqlite3";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";
import { openSqliteStore } from "../../../../../src/kb/store/sqlite/open.ts";
import { testRebuilds } from "../../contract-damage.ts";

const folder = mkdtempSync(join(tmpdir(), "kbsync-rebuild-"));
afterAll(() => {
  rmSync(folder, { recursive: true });
});
let made = 0;

testRebuilds(async () => {
  const path = join(folder, `${++made}.sqlite`);
  const run = async (statement: string): Promise<unknown[]> => {
    const db = new Database(path);
    try {
      const prepared = db.prepare(statement);
      return prepared.reader ? prepared.all() : [prepared.run()];
    } finally {
      db.close();
    }
  };
  return { open: () => openSqliteStore({ path }), run };
}, [
  [
    "a segment",
    "UPDATE word_segment SET data = zeroblob(9) WHERE first_row = (SELECT max(first_row) FROM word_segment)",
  ],
  ["the head of a run", "UPDATE word_run SET filter = zeroblob(9)"],
  [
    "every page",
    "UPDATE word_page SET data = CAST(substr(data, 1, 50) || x'ABCD' || substr(data, 53) AS BLOB)",
  ],
  ["a run that lacks its pages", "DELETE FROM word_page"],
]);
